"""Reads recorded cycles from their rows.

Reading and replaying a large cycle takes seconds of CPU and hundreds of megabytes, so a process does it once at a time.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import orjson
from django.utils.translation import gettext as _

from hekla.apps.cycle_records import selectors
from hekla.apps.cycle_records.models import CycleRecord
from hekla.apps.streaming import FileResponse
from hekla.domain.errors import NotFound, Refused
from hekla.scheduling.column_codec import InvalidRecord
from hekla.scheduling.cycle_document import RecordedCycle, document, read, unpack

_CHUNK = 65_536
_PATIENCE_SECONDS = 10.0
_lock = Lock()


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Hold this around `load` and a replay. Raises Refused if others took too long."""
    if not _lock.acquire(timeout=_PATIENCE_SECONDS):
        raise Refused(_("Other cycles are being replayed now. Try again in a minute."))
    try:
        yield
    finally:
        _lock.release()


def load(row: CycleRecord) -> RecordedCycle:
    """The recorded cycle. Raises NotFound if it has no document, and Refused if it cannot be read."""
    if row.data is None:
        raise NotFound(_("This cycle was not recorded: %s.") % row.get_omission_display())
    base = selectors.base_data(row)
    try:
        known = None if base is None else read(unpack(base)).state
        return read(unpack(bytes(row.data)), known)
    except InvalidRecord as error:
        raise Refused(_("This cycle was recorded in another format, or its record is damaged.")) from error


def file_of(row: CycleRecord) -> FileResponse:
    """The cycle as one whole JSON file. Raises NotFound and Refused."""
    with one_at_a_time():
        text = orjson.dumps(document(load(row)))
    chunks = (text[at : at + _CHUNK] for at in range(0, len(text), _CHUNK))
    return FileResponse(chunks, f"cycle-{row.cluster.name}-{row.pk}.json")
