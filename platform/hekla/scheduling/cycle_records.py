"""Reads recorded cycles from their rows."""

from hekla.apps.cycle_records import selectors
from hekla.apps.cycle_records.models import CycleRecord
from hekla.domain.errors import NotFound
from hekla.domain.translation import translate
from hekla.scheduling.cycle_document import RecordedCycle, read, unpack


def load(row: CycleRecord) -> RecordedCycle:
    """The recorded cycle. Raises NotFound if it has no document, and InvalidRecord."""
    if row.data is None:
        raise NotFound(translate("This cycle was not recorded: {reason}.", reason=row.get_omission_display()))
    base = selectors.base_data(row)
    known = None if base is None else read(unpack(base)).state
    return read(unpack(bytes(row.data)), known)
