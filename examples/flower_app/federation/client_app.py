"""The client: the package's own. It trains on what its node's configuration names under `data`, and sends votes."""

from fedvote.engines.flower import client_app

app = client_app.app
