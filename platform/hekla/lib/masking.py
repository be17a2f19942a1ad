"""Secrets in the output of a terminal, replaced before it is stored.

A terminal prints a secret in pieces: a chunk ends in the middle of it, or a line is wrapped, coloured or moved between
two of its characters. So control codes do not count when secrets are searched, and a possible beginning of a secret is
held back until the next chunk shows what it is. A secret may also be in a control code, such as the title of a window.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator

from hekla.lib.part_search import PartSearch, Spans

SHORTEST = 4
"""Shorter secrets are not masked: they are part of too many other words."""
MASK = b"******"
_LONGEST_PART = 512
_TITLE = rb"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"
_TITLES = re.compile(_TITLE)
_NOISE = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]|" + _TITLE + rb"|\x1b(?:[()][0-~]|[0-Z\\^-~])| \r|[\x00-\x1f\x7f]")
_OPEN_SEQUENCE = re.compile(rb"(?:\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b]*\x1b?|[()])?| )\Z")
_LONGEST_SEQUENCE = 256
"""A sequence that goes on for longer is text: what never ends must not be held back for ever."""
_MOST_HELD = 4096
"""Bytes that are held back. Each chunk searches them again, and between two characters control codes may never end."""


class SecretMask:
    """Masks secrets in a stream of bytes."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._held = b""
        self._search: PartSearch | None = None
        self._parts: frozenset[bytes] = frozenset()
        self.learn(secrets)

    def learn(self, secrets: Iterable[str]) -> None:
        """Mask these from now on."""
        found = frozenset(part for secret in secrets for part in _parts(secret))
        if found != self._parts:
            self._parts, self._search = found, PartSearch(found) if found else None

    def feed(self, data: bytes) -> bytes:
        """The next part of the stream, masked. Its end may be held back."""
        data = self._held + data
        if self._search is None:
            self._held = b""
            return data
        open_sequence = _OPEN_SEQUENCE.search(data, max(0, len(data) - _LONGEST_SEQUENCE))
        end = open_sequence.start() if open_sequence else len(data)
        text, starts, places = _without_noise(data[:end])
        spans, pending = self._search.find(text)
        held = end
        if pending:
            begin, known = len(text) - pending, spans
            if spans and spans[-1][1] > begin:  # the next secret may begin within this one
                begin, known = spans[-1][0], spans[:-1]
            place = _place(begin, starts, places)
            if end - place <= _MOST_HELD:
                held, spans = place, known
        self._held = data[held:]
        return self._masked(data[:held], spans, starts, places)

    def flush(self) -> bytes:
        """What was held back, which nothing follows."""
        data, self._held = self._held, b""
        if self._search is None:
            return data
        text, starts, places = _without_noise(data)
        return self._masked(data, self._search.find(text)[0], starts, places)

    def _masked(self, data: bytes, spans: Spans, starts: list[int], places: list[int]) -> bytes:
        """The data with masks in the place of these stretches of its text, and of secrets in its titles."""
        parts, after = [], 0
        for begin, end in spans:
            parts += [data[after : _place(begin, starts, places)], MASK]
            after = _place(end - 1, starts, places) + 1
        parts.append(data[after:])
        return _TITLES.sub(lambda title: self._masked_title(title[0]), b"".join(parts))

    def _masked_title(self, title: bytes) -> bytes:
        assert self._search is not None  # noqa: S101  (the caller has looked)
        parts, after = [], 0
        for begin, end in self._search.find(title)[0]:
            parts += [title[after:begin], MASK]
            after = end
        return b"".join([*parts, title[after:]])


def _parts(secret: str) -> Iterator[bytes]:
    """The secret without control codes, and of one with several lines each line. Long ones in pieces."""
    for part in {secret, *secret.splitlines()}:
        text = _NOISE.sub(b"", part.strip().encode(errors="replace"))
        for begin in range(0, len(text), _LONGEST_PART):
            if len(piece := text[begin : begin + _LONGEST_PART]) >= SHORTEST:
                yield piece


def _without_noise(data: bytes) -> tuple[bytes, list[int], list[int]]:
    """The text without control codes; where its pieces begin in it, and where they begin in the data."""
    pieces, starts, places, length, after = [], [], [], 0, 0
    for found in _NOISE.finditer(data):
        if found.start() > after:
            pieces.append(data[after : found.start()])
            starts.append(length)
            places.append(after)
            length += found.start() - after
        after = found.end()
    if after < len(data):
        pieces.append(data[after:])
        starts.append(length)
        places.append(after)
    return b"".join(pieces), starts, places


def _place(position: int, starts: list[int], places: list[int]) -> int:
    """Where a position of the text is in the data."""
    piece = bisect_right(starts, position) - 1
    return places[piece] + position - starts[piece]
