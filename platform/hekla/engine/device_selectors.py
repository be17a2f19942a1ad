"""Selectors of device classes and claims: CEL expressions about one device, as Kubernetes defines them.

The text is untrusted. The evaluator limits size, depth and iterations, and sees only the device. The evaluator is
large, so it is imported with the first expression.
"""

import re
from functools import cache, lru_cache
from typing import Any

from hekla.domain.resources import parse_quantity
from hekla.engine.devices import ByDomain, Device

_MAX_LENGTH = 10 * 1024
_REMEMBERED = 1000
_INDEXED = re.compile(r"""device\.(attributes|capacity)\[\s*(?:"([^"]+)"|'([^']+)')\s*\]""")
_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?")


class SelectorError(Exception):
    """The expression is invalid or cannot be evaluated for this device."""


def selects(expression: str, device: Device) -> bool:
    """Whether the expression holds. Raises SelectorError."""
    if len(expression) > _MAX_LENGTH:
        raise SelectorError("The expression is too long.")
    about = {
        "driver": device.driver,
        "attributes": _with_empty(expression, "attributes", device.attributes),
        "capacity": _with_empty(expression, "capacity", device.capacity),
    }
    try:
        answer = _compiled(expression).eval(data={"device": about}).value()
    except RuntimeError as error:
        raise SelectorError(str(error)) from error
    if not isinstance(answer, bool):
        raise SelectorError(str(answer))
    return answer


def _with_empty(expression: str, field: str, known: ByDomain) -> ByDomain:
    """The attributes with an empty mapping for each domain that the expression indexes and the device lacks."""
    named = (double or single for where, double, single in _INDEXED.findall(expression) if where == field)
    return {domain: {} for domain in named} | dict(known)


@lru_cache(maxsize=_REMEMBERED)
def _compiled(expression: str) -> Any:  # noqa: ANN401  (the library has no types)
    return _environment().compile(expression)


@cache
def _environment() -> Any:  # noqa: ANN401
    """CEL with `device`, `quantity` and `semver` and their methods; quantities are numbers, versions are strings."""
    from cel_expr_python import cel  # noqa: PLC0415
    from cel_expr_python.ext import ext_bindings, ext_strings  # noqa: PLC0415

    number, text, truth, whole = cel.Type.DOUBLE, cel.Type.STRING, cel.Type.BOOL, cel.Type.INT

    def declared(name: str, *kinds: tuple[Any, Any, Any], is_member: bool = True) -> Any:  # noqa: ANN401
        overloads = [
            cel.Overload(f"{name}-{at}", returned, parameters, is_member, function)
            for at, (parameters, returned, function) in enumerate(kinds)
        ]
        return cel.FunctionDecl(name, overloads)

    def compared(name: str, returned: Any, answer: Any) -> Any:  # noqa: ANN401
        of_numbers = ([number, number], returned, lambda left, right: answer((left > right) - (left < right)))
        of_versions = ([text, text], returned, lambda left, right: answer(_order(left, right)))
        return declared(name, of_numbers, of_versions)

    functions = [
        declared("quantity", ([text], number, _quantity), is_member=False),
        declared("semver", ([text], text, _semver), is_member=False),
        compared("compareTo", whole, int),
        compared("isGreaterThan", truth, lambda order: order > 0),
        compared("isLessThan", truth, lambda order: order < 0),
        declared("major", ([text], whole, lambda version: _parts(version)[0])),
        declared("minor", ([text], whole, lambda version: _parts(version)[1])),
        declared("patch", ([text], whole, lambda version: _parts(version)[2])),
    ]
    extensions = [ext_bindings.ExtBindings(), ext_strings.ExtStrings()]
    return cel.NewEnv(variables={"device": cel.Type.DYN}, functions=functions, extensions=extensions)


def _quantity(written: str) -> float:
    return parse_quantity("", written)


def _semver(written: str) -> str:
    _parts(written)
    return written


def _parts(version: str) -> tuple[int, int, int, str]:
    found = _VERSION.fullmatch(version)
    if found is None:
        raise ValueError(f"{version} is no version.")
    return int(found[1]), int(found[2]), int(found[3]), found[4] or ""


def _order(left: str, right: str) -> int:
    """Negative, zero or positive, by Semantic Versioning §11."""
    one, other = _sortable(left), _sortable(right)
    return (one > other) - (one < other)


def _sortable(version: str) -> tuple[Any, ...]:
    *numbers, before = _parts(version)
    words = [(0, int(word), "") if word.isdigit() else (1, 0, word) for word in before.split(".") if word]
    return *numbers, not words, words
