"""Changed fields as phrases, and a single change as a sentence with its own verb."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from hekla.apps.audit import fields, values
from hekla.apps.job_history.history import describe_change
from hekla.domain.resources import parse_quantity

_MOST = 6
"""The number of changes that one sentence names."""
_NOTHING: tuple[Any, ...] = (None, "", [], {})


@dataclass(frozen=True, slots=True)
class AuditChange:
    """One field, or one part of it, before and after. `path`: the field, and after a dot the part."""

    kind: str
    path: str
    old: Any
    new: Any

    @property
    def label(self) -> str:
        """The field as a noun."""
        return fields.label(self.kind, self.path)

    @property
    def direction(self) -> int:
        """1 if the amount grew, -1 if it shrank, 0 if it is no amount."""
        old, new = (_amount(self.path, value) for value in (self.old, self.new))
        return 0 if old is None or new is None else (new > old) - (new < old)

    def words(self, value: Any) -> str:  # noqa: ANN401  (any value in an event)
        """A value of the field in words."""
        return values.describe_role(value) if self.path == "platform_role" else values.describe(value)


def flat(kind: str, changes: Mapping[str, Mapping[str, Any]]) -> list[AuditChange]:
    """The changes of an event; of a mapping, each entry that differs."""
    return [one for name, change in changes.items() for one in _parts(kind, name, change.get("old"), change.get("new"))]


def phrases(kind: str, changes: Mapping[str, Mapping[str, Any]]) -> str:
    """All changes in one phrase, for example `weight from 1 to 4; limit of GPUs set to 8`; bounded."""
    if kind == "JobChanged":
        found = [describe_change(path, change) for path, change in changes.items()]
    else:
        found = [_phrase(one) for one in flat(kind, changes)]
    if len(found) > _MOST:
        left = len(found) - _MOST
        found = [*found[:_MOST], ngettext("{n} more change", "{n} more changes", left).format(n=left)]
    return _("; ").join(found)


def verb(change: AuditChange) -> str:
    """The sentence about a single change, with places for the actor, the object and the values."""
    if isinstance(change.new, bool) and (sentence := _SWITCHES.get((change.kind, change.path, change.new))):
        return sentence()
    if isinstance(change.old, list) or isinstance(change.new, list) or _is_long(change):
        return ""
    if change.old in _NOTHING:
        return _("{actor} set the {field} of {object} to {new}.") if change.new not in _NOTHING else ""
    if change.new in _NOTHING:
        return _("{actor} removed the {field} of {object}. It was {old}.")
    return {
        1: _("{actor} raised the {field} of {object} from {old} to {new}."),
        -1: _("{actor} lowered the {field} of {object} from {old} to {new}."),
        0: _("{actor} changed the {field} of {object} from {old} to {new}."),
    }[change.direction]


_SWITCHES = {
    ("ClusterChanged", "is_paused", True): lambda: _("{actor} paused {object}."),
    ("ClusterChanged", "is_paused", False): lambda: _("{actor} resumed {object}."),
    ("TenantChanged", "is_active", True): lambda: _("{actor} activated {object}."),
    ("TenantChanged", "is_active", False): lambda: _("{actor} deactivated {object}."),
    ("UserChanged", "is_active", True): lambda: _("{actor} allowed {object} to sign in."),
    ("UserChanged", "is_active", False): lambda: _("{actor} disabled the sign-in of {object}."),
    ("PriorityClassChanged", "is_default", True): lambda: _("{actor} made {object} the default."),
    ("PriorityClassChanged", "is_default", False): lambda: _("{actor} made {object} no longer the default."),
    ("QueueChanged", "reclaimable", True): lambda: _("{actor} allowed other queues to reclaim from {object}."),
    ("QueueChanged", "reclaimable", False): lambda: _("{actor} forbade other queues to reclaim from {object}."),
}


def _parts(kind: str, path: str, old: Any, new: Any) -> Iterator[AuditChange]:  # noqa: ANN401
    if not isinstance(old or new, Mapping) or not isinstance(new or old, Mapping):
        yield AuditChange(kind, path, old, new)
        return
    before, after = old or {}, new or {}
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            yield AuditChange(kind, f"{path}.{name}", before.get(name), after.get(name))


def _phrase(change: AuditChange) -> str:
    facts = {"field": change.label, "old": change.words(change.old), "new": change.words(change.new)}
    if isinstance(change.old, list) and isinstance(change.new, list):
        return _members(change, change.old, change.new)
    if _is_long(change) or (change.old in _NOTHING and change.new in _NOTHING):
        return change.label
    if change.old in _NOTHING:
        return _("{field} set to {new}").format(**facts)
    if change.new in _NOTHING:
        return _("{field} removed (was {old})").format(**facts)
    return _("{field} from {old} to {new}").format(**facts)


def _members(change: AuditChange, old: list[Any], new: list[Any]) -> str:
    """What a list lost and gained; the field alone if its entries are no plain names."""
    if not all(isinstance(one, str | int) for one in [*old, *new]):
        return change.label
    added, removed = (_(", ").join(str(one) for one in some) for some in (_without(new, old), _without(old, new)))
    facts = {"field": change.label, "added": values.describe(added), "removed": values.describe(removed)}
    if added and removed:
        return _("{field}: {added} added, {removed} removed").format(**facts)
    if added or removed:
        return (_("{field}: {added} added") if added else _("{field}: {removed} removed")).format(**facts)
    return change.label


def _without(some: list[Any], others: list[Any]) -> list[Any]:
    return [one for one in some if one not in others]


def _is_long(change: AuditChange) -> bool:
    """Whether a value is a document or a text, which a sentence does not hold."""
    both = (change.old, change.new)
    return any(isinstance(one, Mapping) or (isinstance(one, str) and ("\n" in one or len(one) > 80)) for one in both)  # noqa: PLR2004


def _amount(path: str, value: Any) -> float | None:  # noqa: ANN401
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    if not isinstance(value, str) or "." not in path:
        return None
    try:
        return float(parse_quantity(path.partition(".")[2], value))
    except ValueError:
        return None
