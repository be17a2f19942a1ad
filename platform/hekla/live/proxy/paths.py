"""The part of a path that names a session, on the host that all sessions share.

The rest is what the tool gets. A path that other programs could read as one outside of the session is refused, although
the tool would get it anyway: proxies in front of the console may have decoded it, or browsers count its cookies by it.
"""

import re
from urllib.parse import unquote_to_bytes

_PATH = re.compile(rb"/(?P<slug>[a-z2-7]{26})(?P<rest>/.*)?", re.DOTALL)
_SEPARATOR = re.compile(rb"[/\\]")
_MOST_DECODED = 4


def split_path(path: bytes) -> tuple[str, bytes]:
    """The slug of the session, and the rest of the path. Both are empty if no session is there, or if it is refused."""
    found = None if _has_dots(path) else _PATH.fullmatch(path)
    return (found["slug"].decode(), found["rest"] or b"") if found is not None else ("", b"")


def _has_dots(path: bytes) -> bool:
    """Whether a segment is “.” or “..”, also after it was decoded several times, or with parameters of a path."""
    for _time in range(_MOST_DECODED):
        if any(part.partition(b";")[0] in (b".", b"..") for part in _SEPARATOR.split(path)):
            return True
        decoded = unquote_to_bytes(path)
        if decoded == path:
            return False
        path = decoded
    return True
