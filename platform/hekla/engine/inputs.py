"""The declaration of a plugin's or action's inputs: what it needs, and what it does without that.

A module declares `NEEDS`, a tuple, beside `open_session` or `execute`. The sizes of nodes, queues and pods, priorities
and weights are always there and are not declared.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from hekla.domain.scheduling_inputs import Input
from hekla.domain.translation import gettext_noop, translate

if TYPE_CHECKING:
    from hekla.engine.policy import PluginOption, SchedulerPolicy

Condition = Callable[["PluginOption", "SchedulerPolicy"], bool]


class Lack(StrEnum):
    """What a plugin does without an input, the mildest first."""

    PART = "part"
    FALLBACK = "fallback"
    REFUSES_SOME = "refuses_some"
    NOTHING = "nothing"
    REFUSES_ALL = "refuses_all"
    WRONG = "wrong"

    @property
    def severity(self) -> int:
        """A larger number is worse."""
        return list(Lack).index(self)

    @property
    def forbids(self) -> bool:
        """Whether a policy with such a plugin cannot be activated."""
        return self in (Lack.REFUSES_ALL, Lack.WRONG)

    @property
    def is_noteworthy(self) -> bool:
        """Whether people are warned. Not if only a part of the plugin has no effect: that holds for most policies."""
        return self is not Lack.PART


def _always(_option: "PluginOption", _policy: "SchedulerPolicy") -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Need:
    """An input, and what happens without it.

    `effect`: that as an English sentence, if there is more to say than `lack` does. `when`: whether the plugin needs
    the input in this policy, with these arguments.
    """

    input: Input
    lack: Lack
    effect: str = ""
    when: Condition = _always

    @property
    def message(self) -> str:
        """What happens without the input, for people."""
        return translate(self.effect or _EFFECTS[self.lack])


_EFFECTS: Mapping[Lack, str] = {
    Lack.PART: gettext_noop("A part of it has no effect."),
    Lack.FALLBACK: gettext_noop("It uses something else instead."),
    Lack.REFUSES_SOME: gettext_noop("Jobs that need it do not start."),
    Lack.NOTHING: gettext_noop("It has no effect."),
    Lack.REFUSES_ALL: gettext_noop("No job starts."),
    Lack.WRONG: gettext_noop("It makes wrong decisions."),
}


def needs_of(extension: object) -> tuple[Need, ...] | None:
    """What a plugin or an action declares; None if it declares nothing, as external ones may."""
    found = getattr(extension, "NEEDS", None)
    is_declared = isinstance(found, tuple) and all(isinstance(one, Need) for one in found)
    return found if is_declared else None


def is_on(name: str, *, default: bool) -> Condition:
    """The condition that a boolean argument is true."""
    return lambda option, _policy: option.truth(name, default=default)


def has_weight(name: str, default: int) -> Condition:
    """The condition that a whole-number argument is not 0."""
    return lambda option, _policy: bool(option.whole(name, default))
