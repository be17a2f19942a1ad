"""Text that strangers wrote, made fit to be shown."""

import re

_STEERING = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?|.)?|[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def strip_control_codes(text: str) -> str:
    """The text without what would move the cursor, recolour or rename a terminal."""
    return _STEERING.sub("", text)


def truncate(text: str, most: int) -> str:
    """At most so many letters, with a mark where some are missing."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
