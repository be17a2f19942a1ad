"""A form field for durations as people write them: `4h`, `90m`, `1d 2h`."""

import re
from decimal import Decimal
from typing import Any

from django import forms
from django.utils.translation import gettext as _

_UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_WORDS = {
    **dict.fromkeys(("day", "days", "天"), "d"),
    **dict.fromkeys(("hour", "hours", "hr", "小时", "时"), "h"),
    **dict.fromkeys(("min", "mins", "minute", "minutes", "分钟", "分"), "m"),
    **dict.fromkeys(("sec", "second", "seconds", "秒"), "s"),
}
_PART = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)\s*([^\W\d_]*)\s*", re.UNICODE)
_MAX_LENGTH = 64
_MAX_SECONDS = 2**31 - 1


class DurationField(forms.CharField):
    """Cleans to whole seconds, or None if empty. A number without a unit is seconds. `minimum`: in seconds."""

    def __init__(self, *, minimum: int = 0, **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(max_length=_MAX_LENGTH, **kwargs)
        self.minimum = minimum
        self.widget.attrs.setdefault("placeholder", "1d 2h")

    def prepare_value(self, value: object) -> object:
        """Seconds as people write them; typed text stays."""
        return write(value) if isinstance(value, int) else value

    def has_changed(self, initial: object, data: str | None) -> bool:
        """Whether the text differs from the one that the initial seconds give."""
        return super().has_changed(self.prepare_value(initial), data)

    def clean(self, value: str | None) -> int | None:
        """The seconds."""
        text = super().clean(value).strip()
        if not text:
            return None
        seconds = read(text)
        if seconds is None:
            raise forms.ValidationError(_("Enter a duration with its units, for example 4h, 90m or 1d 2h."))
        if seconds < self.minimum:
            raise forms.ValidationError(_("Enter a duration of at least %s.") % write(self.minimum))
        if seconds > _MAX_SECONDS:
            raise forms.ValidationError(_("Enter a duration of at most %s.") % write(_MAX_SECONDS))
        return seconds


def read(text: str) -> int | None:
    """The seconds of `1d 2h`, `90 min`, `1.5h` or `7200`; None if the text is not a duration of whole seconds.

    Units go from large to small, each at most once: `2h 1d` is more likely a slip than a wish.
    """
    parts, at = [], 0
    while match := _PART.match(text, at):
        parts.append((match[1], match[2].lower()))
        at = match.end()
        if at == len(text):
            break
    if at != len(text) or not parts:
        return None
    if len(parts) == 1 and not parts[0][1]:
        parts = [(parts[0][0], "s")]
    sizes = [_UNITS.get(_WORDS.get(unit, unit), 0) for _number, unit in parts]
    if 0 in sizes or sizes != sorted(set(sizes), reverse=True):
        return None
    total = sum(Decimal(number) * size for (number, _unit), size in zip(parts, sizes, strict=True))
    return int(total) if total == int(total) else None


def write(seconds: int) -> str:
    """`1d 2h` for 93600. Reading it gives the same seconds."""
    parts = []
    for unit, size in _UNITS.items():
        amount, seconds = divmod(seconds, size)
        if amount:
            parts.append(f"{amount}{unit}")
    return " ".join(parts) or "0s"
