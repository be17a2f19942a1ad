"""What a person may say of this machine as a cluster."""

from hekla.backends.config import BackendConfig, Quantities


class LocalConfig(BackendConfig):
    """Amounts in place of those measured, and labels besides the machine's own."""

    allocatable: Quantities = {}
    labels: dict[str, str] = {}
