"""Durations as manifests write them: `90s`, `10m`, `1h30m`."""

import re

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)", re.ASCII)
_MAX_LENGTH = 64


def seconds(text: str) -> float | None:
    """The duration in seconds; None if the text is not a duration."""
    parts = _PART.findall(text) if len(text) <= _MAX_LENGTH else []
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in parts)
