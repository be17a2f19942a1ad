"""Safe and short forms of text from users."""

import re

_CONTROL_CODES = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?|.)?|[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def strip_control_codes(text: str) -> str:
    """Remove escape sequences and control codes of terminals."""
    return _CONTROL_CODES.sub("", text)


def truncate(text: str, most: int) -> str:
    """At most `most` characters, with an ellipsis if some are cut off."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
