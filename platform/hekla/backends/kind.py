"""What a kind of clusters brings: the object that an entry point of the group `hekla.backends` leads to."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from hekla.backends.base import Backend, Health
from hekla.backends.config import BackendConfig
from hekla.lib.clock import Clock


@dataclass(frozen=True, slots=True)
class BackendContext:
    """What a backend is given beside its configuration.

    `cluster`: its name. `home`: the folder below which it keeps its files. `key`: what the console keeps to
    authenticate there; None where it keeps nothing.
    """

    cluster: str
    home: Path
    clock: Clock
    key: str | None = None


@dataclass(frozen=True, slots=True)
class BackendKind:
    """A kind of clusters; its name is that of its entry point.

    `label`: what people read. `config`: checks what a person wrote as the configuration; the functions get it checked.
    `open`: the backend of one cluster. `check_health`: how such a cluster is at this moment, within a bounded time;
    None where it cannot tell. `durable_files`: patterns of files below the home folder that belong into a backup.
    """

    label: str
    config: type[BackendConfig]
    open: Callable[[Any, BackendContext], Backend]
    check_health: Callable[[Any, BackendContext], Health] | None = None
    durable_files: tuple[str, ...] = ()


def deferred(function: str) -> Callable[..., Any]:
    """The function named `module:function`. Its module is imported at the first call."""

    def call(*arguments: Any) -> Any:  # noqa: ANN401  (whatever the function takes and returns)
        return resolve_name(function)(*arguments)

    return call
