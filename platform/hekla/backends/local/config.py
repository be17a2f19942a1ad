"""The configuration of this machine as a cluster."""

from hekla.backends.config import BackendConfig, Quantities


class LocalConfig(BackendConfig):
    """Amounts that replace the measured ones, and labels in addition to the machine's own."""

    allocatable: Quantities = {}
    labels: dict[str, str] = {}
