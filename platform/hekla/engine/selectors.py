"""Label selectors as Kubernetes has them: all the labels, and all the expressions, must hold."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

_HOLDS: Mapping[str, Callable[[str | None, tuple[str, ...]], bool]] = {
    "In": lambda value, among: value in among,
    "NotIn": lambda value, among: value not in among,
    "Exists": lambda value, _among: value is not None,
    "DoesNotExist": lambda value, _among: value is None,
}


@dataclass(frozen=True, slots=True)
class Expression:
    """`operator` is In, NotIn, Exists or DoesNotExist; any other holds for nothing."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def holds(self, labels: Mapping[str, str]) -> bool:
        judge = _HOLDS.get(self.operator)
        return judge is not None and judge(labels.get(self.key), self.values)


@dataclass(frozen=True, slots=True)
class Selector:
    """An empty one selects everything."""

    labels: Mapping[str, str] = field(default_factory=dict)
    expressions: tuple[Expression, ...] = ()

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Whether what carries these labels is meant."""
        wanted = all(labels.get(name) == value for name, value in self.labels.items())
        return wanted and all(expression.holds(labels) for expression in self.expressions)
