"""Reading a manifest so that no field is lost: unread fields are reported with their path.

A reader takes the fields that it supports from `Fields`; `Fields.close` turns the others into warnings. One `Findings`
collects the problems and warnings of a whole manifest.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hekla.domain.errors import HeklaError, Invalid, Problem, Refused
from hekla.domain.translation import translate
from hekla.domain.validation import quote, suggest

MAX_WARNINGS = 50


@dataclass
class Findings:
    """The problems of a manifest, its fields without effect, and the origin in it of each part of a job.

    `known`: by path the names of fields that the reader knows there, one set for each time that it reads there.
    """

    problems: list[Problem] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    origins: dict[str, str] = field(default_factory=dict)
    known: dict[str, list[set[str]]] = field(default_factory=dict)

    def problem(self, path: str, message: str) -> None:
        self.problems.append(Problem(path, message))

    def not_honoured(self, path: str, why: str = "") -> None:
        self.ignored.append(
            translate("{path}: ignored: {why}", path=path, why=why) if why else translate("{path}: ignored.", path=path)
        )

    def remark(self, path: str, message: str) -> None:
        """A warning about a part of the JobSpec."""
        self.ignored.append(f"{self.place_of(path)}: {message}")

    def warnings(self) -> tuple[str, ...]:
        """The warnings without duplicates; of more than MAX_WARNINGS, the first ones and the number of the others."""
        distinct = list(dict.fromkeys(self.ignored))
        more = len(distinct) - MAX_WARNINGS
        message = translate("… and {more} more ignored fields.", more=more)
        return (*distinct[:MAX_WARNINGS], *([message] if more > 0 else []))

    def place_of(self, path: str) -> str:
        """The manifest's path for a path in the JobSpec, from the nearest part with a known origin."""
        known, rest = path, ""
        while known and known not in self.origins:
            known, _, last = known.rpartition(".")
            rest = f"[{last}]{rest}" if last.isdigit() else f".{last}{rest}"
        return f"{self.origins[known]}{rest}" if known else path

    def translate_paths(self, error: HeklaError) -> HeklaError:
        """An error about the job or flow, with its paths in the manifest."""
        if isinstance(error, Invalid):
            return Invalid([Problem(self.place_of(problem.path), problem.message) for problem in error.problems])
        if isinstance(error, Refused):
            error.path = self.place_of(error.path)
        return error

    def raise_any(self, more: Invalid | None = None) -> None:
        """Raise Invalid with the problems found, and with those of the JobSpec at other paths."""
        known = {problem.path for problem in self.problems}
        translated = [Problem(self.place_of(p.path), p.message) for p in (more.problems if more else ())]
        problems = [*self.problems, *(problem for problem in translated if problem.path not in known)]
        if problems:
            raise Invalid(problems) from more


def not_one(count: int, kind: str, version: str) -> str:
    """The message that a stream has none of a kind, or several."""
    if not count:
        return translate("The text has no {kind} of {version}. Exactly one is required.", kind=kind, version=version)
    return translate(
        "The text has {count} {kind} of {version}. Exactly one is required.", count=count, kind=kind, version=version
    )


def wrong_version(kind: str, version: str, value: object) -> str:
    """The message that manifests of a kind need another `apiVersion`."""
    return translate(
        "For a {kind} this must be {version}, not {given}.", kind=kind, version=version, given=quote(value)
    )


class Fields:
    """A mapping in a manifest, at its path."""

    def __init__(self, data: object, path: str, findings: Findings) -> None:
        self.path, self.findings = path, findings
        self._known: set[str] = set()
        findings.known.setdefault(path, []).append(self._known)
        self._data: Mapping[str, Any] = {}
        if isinstance(data, Mapping):
            self._data = {str(key): value for key, value in data.items()}
        elif data is not None:
            message = translate("Must be a mapping of fields to values, not {given}.", given=quote(data))
            findings.problem(path, message)

    def __contains__(self, name: str) -> bool:
        return self._data.get(name) is not None

    def names(self) -> list[str]:
        """The fields with a value, in order."""
        return [name for name, value in self._data.items() if value is not None]

    def all_names(self) -> list[str]:
        """All fields, also those without a value."""
        return list(self._data)

    def at(self, name: str) -> str:
        """The path of a field."""
        return f"{self.path}.{name}" if self.path else name

    def take(self, name: str) -> Any:  # noqa: ANN401
        """The raw value of a field; None if it is absent."""
        self._known.add(name)
        return self._data.get(name)

    def text(self, name: str) -> str:
        """A field that must be text; empty if it is absent."""
        value = self.take(name)
        if value is None or isinstance(value, str):
            return value or ""
        self.findings.problem(self.at(name), translate("Must be a string, not {given}.", given=quote(value)))
        return ""

    def fields(self, name: str) -> "Fields":
        """A field that must be a mapping."""
        return Fields(self.take(name), self.at(name), self.findings)

    def sequence(self, name: str) -> list[Any]:
        """A field that must be a list; empty if it is absent."""
        value = self.take(name)
        if value is None or isinstance(value, list):
            return value or []
        self.findings.problem(self.at(name), translate("Must be a list, not {given}.", given=quote(value)))
        return []

    def list_of_fields(self, name: str) -> list["Fields"]:
        """A field that must be a list of mappings."""
        items = enumerate(self.sequence(name))
        return [Fields(item, f"{self.at(name)}[{place}]", self.findings) for place, item in items]

    def mapping(self, name: str) -> dict[str, Any]:
        """A field that must be a mapping with any names; empty if it is absent."""
        inner = self.fields(name)
        return dict(inner._data)

    def ignore(self, *names: str) -> None:
        """Accept fields without effect on how the job runs."""
        self._known.update(names)

    def close(self) -> None:
        """Report the fields that nothing took: as without effect, or as wrong if the name resembles a known one."""
        for name, value in self._data.items():
            if name in self._known or value in (None, [], {}, ""):
                continue
            if hint := suggest(name, self._known, cutoff=0.8):
                message = translate("Unknown field {name}{hint}", name=quote(name), hint=hint)
                self.findings.problem(self.at(name), message)
            else:
                self.findings.not_honoured(self.at(name))
