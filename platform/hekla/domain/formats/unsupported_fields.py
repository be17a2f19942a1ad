"""The fields that a job loses in a manifest."""

from collections.abc import Iterator
from typing import Any

from hekla.domain import frameworks
from hekla.domain.jobspec import JobSpec
from hekla.domain.translation import translate
from hekla.domain.validation import join, quote


def unsupported_fields(before: JobSpec, after: JobSpec, kind: str) -> tuple[str, ...]:
    """A sentence for every field in which the two differ, by its path in the JobSpec."""
    return tuple(_differences(_document(before), _document(after), "", kind))


def _document(spec: JobSpec) -> dict[str, Any]:
    """As compared: plugins by their options instead of arguments, since a default may be written or not."""
    options = {
        name: dict(frameworks.load_frameworks()[name].read(arguments)[0]) for name, arguments in spec.plugins.items()
    }
    return spec.model_dump(mode="json") | {"plugins": {name: {"used": True} | each for name, each in options.items()}}


def _differences(before: Any, after: Any, path: str, kind: str) -> Iterator[str]:  # noqa: ANN401  (JSON-like data)
    if before == after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for name in {**before, **after}:
            yield from _differences(before.get(name), after.get(name), join(path, name), kind)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for place, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _differences(old, new, join(path, place), kind)
    elif before in (None, "", [], {}):
        yield translate("{path}: a {kind} adds this{aside}.", path=path, kind=kind, aside=_aside(after))
    elif after in (None, "", [], {}):
        yield translate("{path}: a {kind} does not support this{aside}.", path=path, kind=kind, aside=_aside(before))
    else:
        yield translate(
            "{path}: a {kind} does not support {before}. It uses {after}.",
            path=path,
            kind=kind,
            before=_summary(before),
            after=_summary(after),
        )


def _aside(value: Any) -> str:  # noqa: ANN401  (JSON-like data)
    return "" if isinstance(value, dict) else translate(" ({value})", value=_summary(value))


def _summary(value: Any) -> str:  # noqa: ANN401  (JSON-like data)
    """A short form of a value; of policies, their events and actions."""
    if isinstance(value, list) and value and all(isinstance(item, dict) and "action" in item for item in value):
        return "; ".join(_policy(policy) for policy in value)
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return " ".join(value) or translate("an empty list")
    return quote(value)


def _policy(policy: dict[str, Any]) -> str:
    cause = ", ".join(policy["events"]) or translate("exit code {code}", code=policy["exit_code"])
    seconds = policy["timeout_seconds"]
    delay = translate(" after {seconds} s", seconds=seconds) if seconds else ""
    return f"{cause} → {policy['action']}{delay}"
