"""Reads recorded cycles from their rows."""

import orjson
from django.utils.translation import gettext as _

from hekla.apps.cycle_records import selectors
from hekla.apps.cycle_records.models import CycleRecord
from hekla.apps.streaming import FileResponse
from hekla.domain.errors import NotFound
from hekla.scheduling.cycle_document import RecordedCycle, document, read, unpack

_CHUNK = 65_536


def load(row: CycleRecord) -> RecordedCycle:
    """The recorded cycle. Raises NotFound if it has no document, and InvalidRecord."""
    if row.data is None:
        raise NotFound(_("This cycle was not recorded: %s.") % row.get_omission_display())
    base = selectors.base_data(row)
    known = None if base is None else read(unpack(base)).state
    return read(unpack(bytes(row.data)), known)


def file_of(row: CycleRecord, cycle: RecordedCycle) -> FileResponse:
    """The cycle as one whole JSON file."""
    text = orjson.dumps(document(cycle))
    chunks = (text[at : at + _CHUNK] for at in range(0, len(text), _CHUNK))
    return FileResponse(chunks, f"cycle-{row.cluster.name}-{row.pk}.json")
