"""The engine for many machines: the same rounds over Flower's SuperLink and SuperNodes. Needs `fedvote[flower]`."""

from importlib.util import find_spec

from fedvote.errors import ConfigError

if find_spec("flwr") is None:
    raise ConfigError("the Flower engine needs flwr, which is not installed: pip install '.[flower]' in a clone")
