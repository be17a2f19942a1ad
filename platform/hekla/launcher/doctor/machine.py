"""Checks of this machine: how it keeps pods apart, the data folder, the clock."""

import os
import shutil
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from hekla.backends.local import cgroups, isolation
from hekla.domain.translation import gettext_noop as _
from hekla.launcher.doctor.findings import Finding, Severity
from hekla.launcher.up.home import LEAST_FREE_BYTES, Home
from hekla.lib.checkout import CHECKOUT

_PROBE_GROUP = f"hekla-doctor-{os.getpid()}"


def check_isolation() -> Iterator[Finding]:
    """The layers of the sandbox, and the limits."""
    severity = Severity.WARNING if isolation.failures() else Severity.OK
    yield Finding("isolation", severity if isolation.is_complete() else Severity.PROBLEM, tuple(isolation.sentences()))
    yield _limits()


def check_data(home: Home) -> Iterator[Finding]:
    """The data folder: its owner, its permissions, free space, and the secret key."""
    folder = home.path
    about: dict[str, object] = {"path": folder}
    if not folder.exists():
        yield _new_folder(folder)
    elif not folder.is_dir() or not (home.is_ours or not any(folder.iterdir())):
        yield Finding("data", Severity.PROBLEM, (_("{path} is not a data folder of Hekla."),), about)
    elif not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        yield Finding("data", Severity.PROBLEM, (_("Hekla cannot write to the data folder {path}."),), about)
    elif stat.S_IMODE(folder.stat().st_mode) & 0o077:
        sentence = _("Other users of this machine can open the data folder {path}: run chmod 700 on it.")
        yield Finding("data", Severity.PROBLEM, (sentence,), about)
    else:
        yield Finding("data", Severity.OK, (_("Only its owner can open the data folder {path}."),), about)
    yield _space(folder)
    yield from _key(folder / "secret-key")


def check_clock() -> Finding:
    """Whether the clock can be right: sign-ins, tokens and schedules depend on it."""
    if time.time() < (CHECKOUT / "manage.py").stat().st_mtime:
        sentence = _("The clock is wrong: it shows a time before Hekla was installed.")
        return Finding("clock", Severity.PROBLEM, (sentence,))
    return Finding("clock", Severity.OK, (_("The clock shows a possible time."),))


def _limits() -> Finding:
    parents = cgroups.create_parents(_PROBE_GROUP)
    for path in parents.values():
        cgroups.kill(path)
    limited = cgroups.limited(parents)
    severity = Severity.OK if limited >= cgroups.NEEDED else Severity.WARNING
    version = 2 if any(" " in controllers for controllers in parents) else 1
    means = (_("The system uses control groups of version {version}."),) if parents else ()
    return Finding("limits", severity, (*isolation.limit_sentences(limited), *means), {"version": version})


def _new_folder(folder: Path) -> Finding:
    parent = next(one for one in folder.parents if one.exists())
    if os.access(parent, os.W_OK | os.X_OK):
        sentence = _("The data folder {path} does not exist yet; the first start creates it.")
        return Finding("data", Severity.OK, (sentence,), {"path": folder})
    return Finding("data", Severity.PROBLEM, (_("Hekla cannot write to the data folder {path}."),), {"path": folder})


def _space(folder: Path) -> Finding:
    parent = next(one for one in (folder, *folder.parents) if one.exists())
    free = shutil.disk_usage(parent).free
    values = {"free": free // 2**20, "least": LEAST_FREE_BYTES // 2**20}
    if free < LEAST_FREE_BYTES:
        sentence = _("The disk has {free} MiB free. Hekla needs {least} MiB.")
        return Finding("space", Severity.PROBLEM, (sentence,), values)
    return Finding("space", Severity.OK, (_("The disk has {free} MiB free."),), values)


def _key(path: Path) -> Iterator[Finding]:
    try:
        found = path.lstat()
    except OSError:
        return
    if not stat.S_ISREG(found.st_mode) or stat.S_IMODE(found.st_mode) & 0o077:
        sentence = _("Other users of this machine can read the secret key {path}: run chmod 600 on it.")
        yield Finding("secret-key", Severity.PROBLEM, (sentence,), {"path": path})
    else:
        yield Finding("secret-key", Severity.OK, (_("Only its owner can read the secret key."),))
