"""Sizes of memory as Java programs write them: 512m, 2g. All units are powers of 1024."""

import re
from math import ceil

from hekla.domain.formats.fields import Fields
from hekla.domain.translation import translate
from hekla.domain.validation import quote

_SIZE = re.compile(r"(\d{1,15})\s*([kmgt]?)(i?b|bytes)?", re.ASCII | re.IGNORECASE)
_MEBIBYTES = {"": 1 / 1024**2, "k": 1 / 1024, "m": 1.0, "g": 1024.0, "t": 1024.0**2}


def read(owner: Fields, name: str, *, unit: str = "") -> int | None:
    """The size in MiB, rounded up; None without one. `unit`: of a number without a unit; by default bytes."""
    text = owner.take(name)
    if text in (None, ""):
        return None
    match = _SIZE.fullmatch(str(text).strip())
    if match is None:
        message = translate("Must be an amount of memory, for example 512m or 2g, not {given}.", given=quote(text))
        owner.findings.problem(owner.at(name), message)
        return None
    has_unit = match[2] or match[3]
    return ceil(int(match[1]) * _MEBIBYTES[match[2].lower() if has_unit else unit])
