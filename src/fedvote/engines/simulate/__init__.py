"""The in-process engine: a whole federation on one CPU or GPU."""

from fedvote.engines.simulate.simulation import Simulation, simulate

__all__ = ["Simulation", "simulate"]
