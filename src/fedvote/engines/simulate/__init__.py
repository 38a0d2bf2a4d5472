"""The in-process engine: a whole federation on one CPU or GPU."""

from fedvote.engines.simulate.simulation import Simulation, Snapshot

__all__ = ["Simulation", "Snapshot"]
