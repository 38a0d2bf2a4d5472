"""The server: the package's own, which reads the TOML file in this folder."""

from pathlib import Path

from fedvote.engines.flower.server_app import make

app = make(Path(__file__).parent)
