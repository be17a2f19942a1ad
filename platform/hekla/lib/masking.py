"""Secrets in the output of a terminal, replaced before it is stored.

A terminal prints a secret in pieces: a chunk ends in the middle of it, or a line is wrapped, coloured or moved between
two of its characters. So control codes do not count when secrets are searched, and a possible beginning of a secret is
held back until the next chunk shows what it is.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator

SHORTEST = 4
"""Shorter secrets are not masked: they are part of too many other words."""
MASK = b"******"
_LONGEST_PART = 512
_NOISE = re.compile(
    rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][0-~]|[0-Z\\^-~])| \r|[\x00-\x1f\x7f]"
)
_OPEN_SEQUENCE = re.compile(rb"(?:\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b]*\x1b?|[()])?| )\Z")
_LONGEST_SEQUENCE = 256
"""A sequence that goes on for longer is text: what never ends must not be held back for ever."""


class SecretMask:
    """Masks secrets in a stream of bytes."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._held = b""
        self._secrets: tuple[bytes, ...] = ()
        self.learn(secrets)

    def learn(self, secrets: Iterable[str]) -> None:
        """Mask these from now on."""
        found = {part for secret in secrets for part in _parts(secret)}
        self._secrets = tuple(sorted(found, key=lambda part: (-len(part), part)))
        self._pattern = re.compile(b"|".join(map(re.escape, self._secrets))) if self._secrets else None

    def feed(self, data: bytes) -> bytes:
        """The next part of the stream, masked. Its end may be held back."""
        data = self._held + data
        if self._pattern is None:
            self._held = b""
            return data
        open_sequence = _OPEN_SEQUENCE.search(data, max(0, len(data) - _LONGEST_SEQUENCE))
        end = open_sequence.start() if open_sequence else len(data)
        text, starts, places = _without_noise(data[:end])
        masked, after = self._masked(data, text, starts, places)
        held = max(after, self._held_from(text, starts, places, after, end))
        self._held = data[held:]
        return masked + data[after:held]

    def flush(self) -> bytes:
        """What was held back: no secret came of it."""
        held, self._held = self._held, b""
        return held

    def _masked(self, data: bytes, text: bytes, starts: list[int], places: list[int]) -> tuple[bytes, int]:
        """The data up to the end of its last secret, with masks, and where that is."""
        assert self._pattern is not None  # noqa: S101  (the caller has looked)
        parts, after = [], 0
        for found in self._pattern.finditer(text):
            begin = _place(found.start(), starts, places)
            parts += [data[after:begin], MASK]
            after = _place(found.end() - 1, starts, places) + 1
        return b"".join(parts), after

    def _held_from(self, text: bytes, starts: list[int], places: list[int], after: int, end: int) -> int:
        """Where the possible beginning of a secret is; `end` without one."""
        longest = len(self._secrets[0])
        for begin in range(max(0, len(text) - longest + 1), len(text)):
            place = _place(begin, starts, places)
            if place >= after and any(one.startswith(text[begin:]) for one in self._secrets):
                return place
        return end


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
