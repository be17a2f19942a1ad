"""The kind `local`: this machine."""

from hekla.backends.kind import BackendKind, deferred
from hekla.backends.local.config import LocalConfig
from hekla.domain.scheduling_inputs import Input
from hekla.domain.translation import gettext_noop

KIND = BackendKind(
    label="This machine",
    config=LocalConfig,
    open=deferred("hekla.backends.local.backend:LocalBackend"),
    durable_files=("local/*/pods/*/*/log", "local/*/pods/*/*/log.times", "local/*/pods/*/*/status.json"),
    supplies={
        Input.NODE_LABELS: gettext_noop("labels of this machine and of the cluster's configuration"),
        Input.NODE_USAGE: gettext_noop("the processes and cards of this machine"),
        Input.NUMA_CELLS: gettext_noop("NUMA cells of this machine, with the cpu_policy static"),
        Input.NODE_ANNOTATIONS: gettext_noop("cards of this machine, and annotations in the cluster's configuration"),
    },
    measures_files=True,
)
"""Logs and final statuses belong in a backup. Working folders do not: they are the pods' own, and may have any size."""
