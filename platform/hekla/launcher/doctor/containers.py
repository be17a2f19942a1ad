"""Checks of the container engines of this machine: who answers at each usual socket, and what it lacks."""

import os
from collections.abc import Iterator

from hekla.backends.base import BackendError
from hekla.backends.local import cgroups, isolation
from hekla.backends.local.containers import runtime
from hekla.backends.local.containers.runtime import EngineInfo
from hekla.domain.translation import gettext_noop as _
from hekla.launcher.doctor.findings import Finding, Severity, literal


def check_engines() -> Iterator[Finding]:
    """Each engine, the one first that clusters use unless they name a socket. No engine is no problem."""
    sockets = dict.fromkeys(os.path.realpath(path) for path in runtime.usual_sockets() if os.path.exists(path))
    for path in sockets:
        yield _engine(path)
    if not sockets:
        sentence = _("No container engine listens here. Pods are processes, and their images have no effect.")
        yield Finding("runtime", Severity.OK, (sentence,))


def _engine(path: str) -> Finding:
    try:
        engine = runtime.ask(path)
    except BackendError as error:
        return Finding("runtime", Severity.WARNING, (literal(str(error)),), {"path": path})
    problems = tuple(_problems(engine))
    sentences = (
        _("{name} {version} answers at {path}."),
        _("It runs without root.") if engine.is_rootless else _("It runs as root."),
        _("Its storage is {storage}, and {oci_runtime} runs its containers."),
        *isolation.limit_sentences(engine.limits),
        *problems,
        *(() if engine.takes_devices else (_("It gives containers no GPUs. That needs Podman 5.4 or Docker 25."),)),
    )
    severity = Severity.WARNING if problems or not engine.limits >= cgroups.NEEDED else Severity.OK
    values = {"name": engine.name, "version": engine.version, "path": path, "storage": engine.storage}
    return Finding("runtime", severity, sentences, values | {"oci_runtime": engine.oci_runtime})


def _problems(engine: EngineInfo) -> Iterator[str]:
    if not engine.filters_calls:
        yield _("It does not filter the system calls of pods (seccomp).")
    if engine.is_rootless and os.geteuid() == 0:
        yield _("Hekla runs as root and cannot use it, because it has no users for tenants.")
