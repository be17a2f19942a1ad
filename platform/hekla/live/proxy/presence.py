"""Reports who uses sessions of this process: the person of each open request or websocket, or of the last one."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from hekla.apps.workbench import presence
from hekla.live.threads import in_thread

if TYPE_CHECKING:
    from hekla.live.proxy.admissions import SessionAdmission


async def report(admissions: Iterable["SessionAdmission"], *, now: datetime, monotonic: float) -> None:
    """Report these admissions, which were used since the last report. `monotonic`: the same time on its clock."""
    places: dict[tuple[int, int], datetime] = {}
    for one in admissions:
        if one.grant is not None:
            at = now if one.open else now - timedelta(seconds=monotonic - one.used_at)
            place = (one.grant.session, one.entry.person)
            places[place] = max(at, places.get(place, at))
    if places:
        await in_thread(partial(presence.note, places))
