"""The kind `local`: this machine."""

from hekla.backends.kind import BackendKind, deferred
from hekla.backends.local.config import LocalConfig

KIND = BackendKind(
    label="This machine",
    config=LocalConfig,
    open=deferred("hekla.backends.local.backend:LocalBackend"),
    durable_files=("local/*/pods/*/*/log", "local/*/pods/*/*/status.json"),
)
"""Logs and final statuses belong in a backup. Working folders do not: they are the pods' own, and may have any size."""
