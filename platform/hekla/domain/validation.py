"""Parts of messages about invalid documents: quoted values, suggestions, and paths.

Pydantic is not imported here, because the engine reads policies without it (`model_errors` explains Pydantic's errors).
"""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from hekla.domain.errors import Problem
from hekla.domain.translation import translate

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


class InconsistentFields(ValueError):
    """Values that contradict one another. Paths of the problems are relative to the field that raises this."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(problem.message for problem in problems))
        self.problems = tuple(problems)


def quote(value: object) -> str:
    """A short form of a value for messages, with text in quotation marks."""
    if isinstance(value, str):
        return f"“{value[:40]}…”" if len(value) > 40 else f"“{value}”"  # noqa: PLR2004
    if isinstance(value, Mapping):
        return translate("a mapping")
    if isinstance(value, list | tuple):
        return translate("a list")
    if isinstance(value, bool):
        return str(value).lower()
    return translate("nothing") if value is None else f"{value!s:.40}"


def suggest(word: str, choices: Iterable[str], *, cutoff: float = 0.6) -> str:
    """“. Did you mean “x”?” with the closest choice; empty if no choice is close."""
    close = difflib.get_close_matches(word[:80], list(choices), n=1, cutoff=cutoff)
    return translate(". Did you mean “{word}”?", word=close[0]) if close else ""


def not_one_of(value: object, choices: Sequence[str]) -> str:
    """The message that a value is not among the choices, with the closest choice."""
    values = {"given": quote(value), "choices": ", ".join(choices)}
    if isinstance(value, str) and (hint := suggest(value, choices)):
        return translate("{given} is not one of {choices}{hint}", hint=hint, **values)
    return translate("{given} is not one of {choices}.", **values)


def no_task(name: str, names: Sequence[str]) -> str:
    """The message that the job has no task of this name."""
    if hint := suggest(name, names):
        return translate("Unknown task {name}{hint}", name=quote(name), hint=hint)
    return translate("Unknown task {name}. Available: {names}.", name=quote(name), names=", ".join(names))


def find_cycle(dependencies: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """A cycle of names that depend on one another, the first repeated at the end; empty if there is none."""
    try:
        TopologicalSorter(dependencies).prepare()
    except CycleError as error:
        return tuple(reversed(error.args[1]))
    return ()


def is_text(text: str) -> bool:
    """Whether programs, files and databases accept the text: no NUL, no half of a surrogate pair."""
    return _UNSTORABLE.search(text) is None


def join(*parts: object) -> str:
    """A dotted path from its parts, leaving empty ones out."""
    return ".".join(str(part) for part in parts if part != "")
