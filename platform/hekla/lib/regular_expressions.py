"""Regular expressions of others, matched in linear time: the syntax of RE2 as far as names of machines need it.

Python's `re` takes exponential time for some expressions. This module compiles one to a program of few instructions
(Thompson), follows all its branches at once, and keeps the sets of branches as states of an automaton.

Supported: `.`, `[a-z]`, `[^0-9]`, `\\d \\w \\s`, escapes of punctuation, `( )`, `(?: )`, `|`, `* + ? {2,5}`, also lazy,
and `^ $ \\A \\z`. Characters are those of printable ASCII. Names are not empty.
"""

import re
import string
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

MAX_LENGTH, MAX_INSTRUCTIONS, _MAX_DEPTH = 1000, 1000, 30
_MAX_EFFORT = 500_000
"""Instructions of all states together."""
_START, _END, _MATCH = "start", "end", "match"
_SPLIT = "split"
_Characters = frozenset[str]
_Instruction = tuple[str, tuple[int, ...]] | _Characters
"""Characters: one of them, then the next instruction. Else its kind, and for a split the offsets of its branches."""
_Program = list[_Instruction]
_State = frozenset[int]
_ALL = frozenset(map(chr, range(32, 127)))
_DIGITS, _SPACE = frozenset(string.digits), frozenset(" ")
_WORD = frozenset(string.ascii_letters + string.digits + "_")
_CLASSES = {"d": _DIGITS, "D": _ALL - _DIGITS, "w": _WORD, "W": _ALL - _WORD, "s": _SPACE, "S": _ALL - _SPACE}
_COUNTS = re.compile(r"\{(\d{1,4})(,(\d{0,4}))?\}")


class UnsupportedExpression(ValueError):
    """The expression is invalid, too large, or uses what this module does not support."""


class SortedNames:
    """Names in order, each with the number of characters that it shares with the one before."""

    def __init__(self, names: Iterable[str]) -> None:
        found = sorted(names)
        self.shared = [(_shared(before, name), name) for before, name in pairwise(["", *found])]


class RegularExpression:
    """A compiled expression. Raises UnsupportedExpression."""

    def __init__(self, text: str) -> None:
        self._program: _Program = [*_Parser(text).program(), (_MATCH, ())]
        self._next: dict[tuple[_State, str], _State] = {}
        self._final: dict[_State, bool] = {}
        self._effort = 0
        self._first = self._reached([0], at_start=True)

    def search_all(self, names: SortedNames) -> Iterator[str]:
        """The names in which it occurs. Raises UnsupportedExpression if it is too complex for them.

        A name continues where it differs from the one before.
        """
        states = [self._first]
        for shared, name in names.shared:
            del states[shared + 1 :]
            state = states[-1]
            for character in name[shared:]:
                state = self._next.get((state, character)) or self._step(state, character)
                states.append(state)
            if self._ends(state):
                yield name

    def _step(self, state: _State, character: str) -> _State:
        """The state after one more character; a match stays one."""
        self._effort += len(state)
        if self._effort > _MAX_EFFORT:
            raise UnsupportedExpression("The expression is too complex")
        after = (at + 1 for at in state if character in self._characters(at))
        found = self._next[state, character] = state if self._is_match(state) else self._reached([0, *after])
        return found

    def _ends(self, state: _State) -> bool:
        """Whether a name may end here."""
        if state not in self._final:
            self._final[state] = self._is_match(self._reached(state, at_end=True))
        return self._final[state]

    def _reached(self, begin: Iterable[int], *, at_start: bool = False, at_end: bool = False) -> _State:
        """These instructions, and those that follow without a character."""
        reached, left = set[int](), list(begin)
        while left:
            at = left.pop()
            if at in reached:
                continue
            reached.add(at)
            instruction = self._program[at]
            if isinstance(instruction, frozenset):
                continue
            kind, offsets = instruction
            if (kind == _START and at_start) or (kind == _END and at_end):
                left.append(at + 1)
            left.extend(at + offset for offset in offsets)
        return frozenset(reached)

    def _characters(self, at: int) -> _Characters:
        instruction = self._program[at]
        return instruction if isinstance(instruction, frozenset) else frozenset()

    def _is_match(self, state: _State) -> bool:
        return len(self._program) - 1 in state


class _Parser:
    """Reads an expression from left to right."""

    def __init__(self, text: str) -> None:
        if len(text) > MAX_LENGTH:
            raise UnsupportedExpression("The expression is too long")
        self._text, self._at, self._depth = text, 0, 0

    def program(self) -> _Program:
        """The program of the whole expression."""
        found = self._alternatives()
        if self._at < len(self._text):
            raise UnsupportedExpression("A parenthesis is closed that is not open")
        return found

    def _alternatives(self) -> _Program:
        found = self._sequence()
        while self._take("|"):
            other = self._sequence()
            found = _checked([_split(1, len(found) + 2), *found, _split(len(other) + 1), *other])
        return found

    def _sequence(self) -> _Program:
        found: _Program = []
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            found = _checked([*found, *self._repeated()])
        return found

    def _repeated(self) -> _Program:
        one = self._atom()
        counts = self._counts()
        if counts is None:
            return one
        self._take("?")  # lazy: the same names match
        if self._counts() is not None:
            raise UnsupportedExpression("A repetition is repeated")
        least, most = counts
        if len(one) * max(least, most or 0, 1) > MAX_INSTRUCTIONS:
            raise UnsupportedExpression("The expression is too large")
        rest = _any_number(one) if most is None else _up_to(one, most - least)
        return [*one * least, *rest]

    def _counts(self) -> tuple[int, int | None] | None:
        """How often the part before occurs; None: once, as nothing is said."""
        for sign, counts in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._take(sign):
                return counts
        found = _COUNTS.match(self._text, self._at)
        if found is None:
            return None
        self._at = found.end()
        least = int(found[1])
        most = least if found[2] is None else int(found[3]) if found[3] else None
        if most is not None and most < least:
            raise UnsupportedExpression("A repetition has no number")
        return least, most

    def _atom(self) -> _Program:
        character = self._read()
        if character == "(":
            return self._group()
        if character in "*+?":
            raise UnsupportedExpression("There is nothing to repeat")
        simple: dict[str, _Instruction] = {"^": (_START, ()), "$": (_END, ()), ".": _ALL}
        if character == "[":
            return [self._set()]
        return [self._escaped() if character == "\\" else simple.get(character, frozenset(character))]

    def _group(self) -> _Program:
        if self._take("?") and not self._take(":"):
            raise UnsupportedExpression("Groups with options or names are not supported")
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise UnsupportedExpression("The expression has too many parentheses")
        found = self._alternatives()
        self._depth -= 1
        if not self._take(")"):
            raise UnsupportedExpression("A parenthesis is not closed")
        return found

    def _escaped(self) -> _Instruction:
        character = self._read()
        anchors: dict[str, _Instruction] = {"A": (_START, ()), "z": (_END, ())}
        return anchors.get(character) or self._class(character)

    def _class(self, character: str) -> _Characters:
        if character.isalnum() and character not in _CLASSES:
            raise UnsupportedExpression("An escape is not supported")
        return _CLASSES.get(character, frozenset(character))

    def _set(self) -> _Characters:
        is_negated, found = self._take("^"), set[str]()
        is_first = True
        while is_first or not self._take("]"):
            is_first = False
            some = self._member()
            if len(some) == 1 and self._is_range():
                self._at += 1
                (low,), (high, *more) = some, self._member()
                if more or high < low:
                    raise UnsupportedExpression("A range of characters is not valid")
                some = frozenset(map(chr, range(ord(low), ord(high) + 1))) & _ALL
            found |= some
        return _ALL - found if is_negated else frozenset(found)

    def _member(self) -> _Characters:
        character = self._read()
        if character == "[" and self._text[self._at : self._at + 1] == ":":
            raise UnsupportedExpression("Named classes are not supported")
        return self._class(self._read()) if character == "\\" else frozenset(character)

    def _is_range(self) -> bool:
        return self._text[self._at : self._at + 1] == "-" and self._text[self._at + 1 : self._at + 2] not in ("]", "")

    def _take(self, expected: str) -> bool:
        is_there = self._text.startswith(expected, self._at)
        self._at += len(expected) if is_there else 0
        return is_there

    def _read(self) -> str:
        if self._at >= len(self._text):
            raise UnsupportedExpression("The expression ends too early")
        self._at += 1
        return self._text[self._at - 1]


def _shared(before: str, name: str) -> int:
    """The number of characters with which both begin."""
    pairs = zip(before, name, strict=False)
    return next((at for at, (left, right) in enumerate(pairs) if left != right), min(len(before), len(name)))


def _split(*offsets: int) -> _Instruction:
    return _SPLIT, offsets


def _any_number(one: Sequence[_Instruction]) -> _Program:
    return [_split(1, len(one) + 2), *one, _split(-len(one) - 1)]


def _up_to(one: Sequence[_Instruction], most: int) -> _Program:
    """At most this many times: each time may be the last."""
    size = (len(one) + 1) * most
    return [part for left in range(most) for part in (_split(1, size - left * (len(one) + 1)), *one)]


def _checked(program: _Program) -> _Program:
    if len(program) > MAX_INSTRUCTIONS:
        raise UnsupportedExpression("The expression is too large")
    return program
