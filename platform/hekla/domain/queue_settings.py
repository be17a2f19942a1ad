"""Settings of queues for plugins of the scheduler: node groups, the place in the hierarchy, and the order of jobs.

`settings` are the fields of a queue by name, as in its row and its REST document. Volcano writes them as affinity and
annotations.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

from hekla.domain.errors import Problem
from hekla.domain.resources import InvalidQuantity, Resources
from hekla.domain.translation import translate
from hekla.domain.validation import quote

GROUP_LABEL = "volcano.sh/nodegroup-name"
"""The label of nodes that names their group."""
HIERARCHY, HIERARCHY_WEIGHTS = "volcano.sh/hierarchy", "volcano.sh/hierarchy-weights"
GROUP_LIMITS = "volcano.sh/nodegroup-resource-limits"
CARD_QUOTA = "volcano.sh/card.quota"
JOB_ORDER = "hekla.io/job-order"
ROOT = "root"
"""Volcano's name of the root of all queues."""

_REQUIRED, _PREFERRED = (f"{one}DuringSchedulingIgnoredDuringExecution" for one in ("required", "preferred"))
AFFINITY: Mapping[str, tuple[str, str]] = {
    "required_node_groups": ("nodeGroupAffinity", _REQUIRED),
    "preferred_node_groups": ("nodeGroupAffinity", _PREFERRED),
    "excluded_node_groups": ("nodeGroupAntiAffinity", _REQUIRED),
    "avoided_node_groups": ("nodeGroupAntiAffinity", _PREFERRED),
}
"""The lists of node groups of a queue, and their names in the `affinity` of Volcano's Queue."""
OF_ANNOTATIONS: Mapping[str, str] = {
    "job_order": JOB_ORDER,
    "hierarchy": HIERARCHY,
    "hierarchy_weights": HIERARCHY_WEIGHTS,
    "node_group_limits": GROUP_LIMITS,
    "card_quota": CARD_QUOTA,
}
"""The other settings, and their annotations in Volcano's Queue."""
MAX_GROUPS, MAX_RESOURCES, MAX_DEPTH, MAX_PATH = 64, 32, 16, 1024
MAX_NAME, MAX_WEIGHTS = 63, 200
MAX_MODELS, MAX_MODEL, MAX_CARDS = 64, 128, 1_000_000
_EXCLUDED = "excluded_node_groups"
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_MODEL = re.compile(r"[A-Za-z0-9][-A-Za-z0-9_./*]*")
_WEIGHT = re.compile(r"[0-9]{1,5}(\.[0-9]{1,3})?", re.ASCII)


class JobOrder(StrEnum):
    """The order of the pending jobs of one queue. Without one, the plugins of the policy decide.

    `FAIR`: jobs of the tenant that holds the least in the queue, then of its person that holds the least.
    `SLA`: the earliest deadline by the waiting time in the job's annotations.
    """

    FIFO = "fifo"
    FAIR = "fair"
    PRIORITY = "priority"
    SLA = "sla"


def annotations(settings: Mapping[str, Any]) -> dict[str, str]:
    """The annotations for the settings that are set."""
    found = {name: settings.get(field) for field, name in OF_ANNOTATIONS.items()}
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in found.items() if value}


def affinity(settings: Mapping[str, Any]) -> dict[str, dict[str, list[str]]]:
    """The `affinity` of Volcano's Queue; empty without node groups."""
    found: dict[str, dict[str, list[str]]] = {}
    for field, (side, strength) in AFFINITY.items():
        if groups := settings.get(field):
            found.setdefault(side, {})[strength] = list(groups)
    return found


def problems(settings: Mapping[str, Any]) -> Iterator[Problem]:
    """What is wrong with the settings, whatever the cluster."""
    for field in AFFINITY:
        yield from _names(field, settings[field])
    yield from _contradictions(settings)
    yield from _limits(settings["node_group_limits"])
    yield from _card_quota(settings["card_quota"])
    yield from _hierarchy(settings["hierarchy"], settings["hierarchy_weights"])


def _names(field: str, groups: Sequence[str]) -> Iterator[Problem]:
    if len(groups) > MAX_GROUPS:
        yield Problem(field, translate("At most {most} node groups.", most=MAX_GROUPS))
    elif (wrong := next((name for name in groups if not _NAME.fullmatch(name)), None)) is not None:
        yield Problem(field, _wrong_name(wrong))


def _wrong_name(name: str) -> str:
    return translate(
        "{name} is not the value of a node label. Use at most 63 letters, digits, hyphens, underscores and dots. The "
        "first and last character must be a letter or digit.",
        name=quote(name),
    )


def _contradictions(settings: Mapping[str, Any]) -> Iterator[Problem]:
    wanted = {group for field in AFFINITY if field != _EXCLUDED for group in settings[field]}
    if both := sorted(wanted.intersection(settings[_EXCLUDED])):
        yield Problem(_EXCLUDED, translate("{name} is in another list of node groups too.", name=quote(both[0])))


def _limits(limits: Mapping[str, Mapping[str, Any]]) -> Iterator[Problem]:
    field = "node_group_limits"
    yield from _names(field, list(limits))
    for group, amounts in list(limits.items())[:MAX_GROUPS]:
        if len(amounts) > MAX_RESOURCES:
            yield Problem(field, translate("{name}: at most {most} resources.", name=quote(group), most=MAX_RESOURCES))
            return
        try:
            Resources.parse(amounts)
        except InvalidQuantity as error:
            yield Problem(field, f"{quote(group)}: {error}.")


def _card_quota(quota: Mapping[str, Any]) -> Iterator[Problem]:
    if len(quota) > MAX_MODELS:
        yield Problem("card_quota", translate("At most {most} card models.", most=MAX_MODELS))
        return
    for model, count in quota.items():
        if len(model) > MAX_MODEL or not _MODEL.fullmatch(model):
            yield Problem("card_quota", translate("{name} is not the model of a card.", name=quote(model)))
        elif isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= MAX_CARDS:
            message = translate("{name}: use a whole number from 0 to {most}.", name=quote(model), most=MAX_CARDS)
            yield Problem("card_quota", message)


def _hierarchy(path: str, weights: str) -> Iterator[Problem]:
    names = path.split("/") if path else []
    if weights and not path:
        yield Problem("hierarchy_weights", translate("Weights need a path in “Hierarchy”."))
    if not names:
        return
    if names[0] != ROOT or not 2 <= len(names) <= MAX_DEPTH:  # noqa: PLR2004
        message = translate(
            "Start with “root/”, for example root/science/dev, with at most {most} names.", most=MAX_DEPTH
        )
        yield Problem("hierarchy", message)
    elif (wrong := next((name for name in names if not _NAME.fullmatch(name)), None)) is not None:
        yield Problem("hierarchy", _wrong_path_name(wrong))
    if weights:
        yield from _weights(weights.split("/"), len(names))


def _wrong_path_name(name: str) -> str:
    return translate(
        "{name} is not a name. Use at most 63 letters, digits, hyphens, underscores and dots between two slashes.",
        name=quote(name),
    )


def _weights(weights: Sequence[str], count: int) -> Iterator[Problem]:
    if len(weights) != count:
        message = translate(
            "Write one weight for each of the {count} names of the path, for example 1/2/4.", count=count
        )
        yield Problem("hierarchy_weights", message)
    elif (wrong := next((text for text in weights if not _is_weight(text)), None)) is not None:
        message = translate("{text} is not a weight. Use numbers from 1 to 99999.", text=quote(wrong))
        yield Problem("hierarchy_weights", message)


def _is_weight(text: str) -> bool:
    return bool(_WEIGHT.fullmatch(text)) and float(text) >= 1


def is_above(path: str, other: str) -> bool:
    """Whether one path is the other one, or leads to it."""
    return f"{other}/".startswith(f"{path}/")


def branch_weights(path: str, weights: str) -> dict[str, float]:
    """The weight of each branch from the root to the queue, by its path; 1 without weights."""
    names = path.split("/") if path else []
    numbers = [float(text) for text in weights.split("/")] if weights else [1.0] * len(names)
    return {"/".join(names[: end + 1]): numbers[end] for end in range(1, len(names))}
