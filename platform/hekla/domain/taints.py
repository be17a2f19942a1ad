"""Taints of nodes: they keep pods that do not tolerate them away."""

from dataclasses import dataclass
from enum import StrEnum

_OF_CONDITIONS = "node.kubernetes.io/"


class TaintEffect(StrEnum):
    """What a taint does to pods that do not tolerate it: no new ones, preferably no new ones, or none at all."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint of a node. As text, it has kubectl's form: `key=value:NoSchedule`."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"

    @classmethod
    def parse(cls, text: str) -> "Taint":
        """From its text."""
        name, _, effect = text.rpartition(":")
        key, _, value = name.partition("=")
        return cls(key, value, effect)

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"

    @property
    def is_of_condition(self) -> bool:
        """Whether Kubernetes sets it while a condition of the node lasts, for example while its disk is full."""
        return self.key.startswith(_OF_CONDITIONS)
