"""The kind `simulated`: pods in simulated time."""

from hekla.backends.kind import BackendKind, deferred
from hekla.backends.simulated.config import SimulatedConfig

KIND = BackendKind(
    label="Simulated",
    config=SimulatedConfig,
    open=deferred("hekla.backends.simulated.backend:SimulatedBackend"),
    durable_files=("simulated/*/journal.jsonl",),
)
