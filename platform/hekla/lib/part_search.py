"""Searches a text for many others at once, in a time that depends on neither their number nor what they have in common.

This is the automaton of Aho and Corasick. A regular expression with thousands of alternatives tries them one by one at
each place, which takes seconds for a text of 64 KiB.
"""

import re
from collections import deque
from collections.abc import Iterable

Spans = list[tuple[int, int]]
"""Where something begins, and where it has ended; in order, and none overlaps another."""


class PartSearch:
    """`parts`: what is searched for; none is empty."""

    def __init__(self, parts: Iterable[bytes]) -> None:
        self._steps: dict[int, int] = {}
        """The next state, by the state (shifted by eight bits) and the byte."""
        self._depths, self._lengths, self._children = [0], [0], [list[tuple[int, int]]()]
        """Of each state: how many bytes lead to it, and the length of the longest part that ends there, or 0."""
        for part in parts:
            self._add(part)
        self._falls = [0] * len(self._depths)
        """The state for the longest end of a state's bytes that is another one's beginning."""
        self._pending = [0] * len(self._depths)
        """How many of the last bytes may be the beginning of a part."""
        self._link()
        first = b"".join(re.escape(bytes([byte])) for byte, _state in self._children[0])
        self._first = re.compile(b"[" + first + b"]" if first else b"(?!)")

    def find(self, text: bytes) -> tuple[Spans, int]:
        """Where parts are in the text, overlapping ones together; and how many of its last bytes may begin another."""
        steps, falls, lengths = self._steps, self._falls, self._lengths
        spans, state, at = Spans(), 0, 0
        while at < len(text):
            if not state:
                found = self._first.search(text, at)
                if found is None:
                    return spans, 0
                at = found.start()
            byte = text[at]
            while (inner := steps.get(state << 8 | byte)) is None and state:
                state = falls[state]
            state, at = inner or 0, at + 1
            if length := lengths[state]:
                begin = at - length
                while spans and spans[-1][1] > begin:
                    begin = min(begin, spans.pop()[0])
                spans.append((begin, at))
        return spans, self._pending[state]

    def _add(self, part: bytes) -> None:
        state = 0
        for byte in part:
            key = state << 8 | byte
            if key not in self._steps:
                inner = self._steps[key] = len(self._depths)
                self._depths.append(self._depths[state] + 1)
                self._lengths.append(0)
                self._children.append([])
                self._children[state].append((byte, inner))
            state = self._steps[key]
        self._lengths[state] = len(part)

    def _link(self) -> None:
        """Find where each state falls back to, those with fewer bytes first."""
        waiting = deque(state for _byte, state in self._children[0])
        while waiting:
            state = waiting.popleft()
            fall = self._falls[state]
            self._lengths[state] = self._lengths[state] or self._lengths[fall]
            self._pending[state] = self._depths[state] if self._children[state] else self._pending[fall]
            for byte, inner in self._children[state]:
                other = fall
                while (reached := self._steps.get(other << 8 | byte)) is None and other:
                    other = self._falls[other]
                self._falls[inner] = reached or 0
                waiting.append(inner)
