"""A kind of cluster: the object to which an entry point of the group `hekla.backends` refers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from hekla.backends.base import Backend, Health
from hekla.backends.config import BackendConfig
from hekla.domain.scheduling_inputs import Input
from hekla.domain.translation import gettext_noop
from hekla.lib.clock import Clock


@dataclass(frozen=True, slots=True)
class BackendContext:
    """The arguments of a backend beside its configuration.

    `cluster`: its name. `home`: the folder for its files. `key`: the stored credentials of the cluster, or None.
    `metrics_token`: the stored token for its server of metrics; empty: none.
    """

    cluster: str
    home: Path
    clock: Clock
    key: str | None = None
    metrics_token: str = ""


def _labels_only() -> Mapping[Input, str]:
    return {Input.NODE_LABELS: gettext_noop("labels of the cluster's nodes")}


@dataclass(frozen=True, slots=True)
class BackendKind:
    """A kind of cluster; its name is the name of its entry point.

    `label`: the name on pages. `config`: the model that validates the configuration; the functions receive it
    validated. `open`: returns the backend of one cluster. `check_health`: returns the present health of a cluster in
    bounded time; None if not supported. `durable_files`: patterns of files below the home folder for backups.
    `supplies`: the inputs of scheduling that the backend reports, each with its source as an English phrase.
    `measures_files`: whether the facet `files` knows the room that the files of a job take.
    """

    label: str
    config: type[BackendConfig]
    open: Callable[[Any, BackendContext], Backend]
    check_health: Callable[[Any, BackendContext], Health] | None = None
    durable_files: tuple[str, ...] = ()
    supplies: Mapping[Input, str] = field(default_factory=_labels_only)
    measures_files: bool = False


def deferred(function: str) -> Callable[..., Any]:
    """The function named `module:function`. Its module is imported at the first call."""

    def call(*arguments: Any) -> Any:  # noqa: ANN401  (whatever the function takes and returns)
        return resolve_name(function)(*arguments)

    return call
