"""The tenants whose pods run here: one file for each, with the user id of its pods."""

import fcntl
import os
from pathlib import Path

from hekla.backends.base import StartRefused
from hekla.backends.local import isolation

_FIRST_UID = 1_900_000_000
"""Above the numbers of people and of containers."""


def admit(folder: Path, tenant: str, *, is_apart: bool, accepts_several: bool) -> int:
    """The user id of this tenant's pods, its own if the console runs as root; else 0, for the console's own.

    `is_apart`: whether pods of different tenants are kept apart.

    Numbers are never given twice. Raises StartRefused for a second tenant on a machine that cannot keep their pods
    apart, unless an admin accepts that.
    """
    number = _number(folder, tenant or "-")
    if is_apart:
        return number if os.geteuid() == 0 else 0
    if number != _FIRST_UID and not accepts_several:
        raise StartRefused(
            "This machine cannot keep the pods of different tenants apart, so it serves only the tenant that used it "
            f"first. Missing: {isolation.missing()}. An admin can accept the risk in the cluster's settings."
        )
    return 0


def _number(folder: Path, tenant: str) -> int:
    own = folder / tenant
    if not own.exists():
        folder.mkdir(mode=0o700, exist_ok=True)
        with open(folder / ".lock", "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not own.exists():
                draft = folder / ".draft"
                draft.write_text(str(_FIRST_UID + sum(not other.name.startswith(".") for other in folder.iterdir())))
                draft.rename(own)
    return int(own.read_text())
