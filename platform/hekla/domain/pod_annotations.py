"""Annotations of pods that plugins of the scheduler read. A job has them for all of its pods, a task for its own."""

import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, Field

from hekla.domain.card_resources import CARD_NAME
from hekla.domain.errors import Problem
from hekla.domain.field_types import Text
from hekla.domain.translation import translate
from hekla.domain.validation import InconsistentFields, is_text

PREEMPTABLE, TASK_PRIORITY = "volcano.sh/preemptable", "volcano.sh/task-priority"
NUMA_POLICY = "volcano.sh/numa-topology-policy"
POD_ANNOTATIONS = frozenset(
    {
        PREEMPTABLE,
        TASK_PRIORITY,
        NUMA_POLICY,
        "volcano.sh/cooldown-time",
        "volcano.sh/revocable-zone",
        "volcano.sh/jdb-min-available",
        "volcano.sh/jdb-max-unavailable",
        "volcano.sh/qos-level",
        "volcano.sh/resource-strategy-scoring-type",
        "volcano.sh/resource-strategy-scoring-weight",
        CARD_NAME,
        "nvidia.com/use-gputype",
        "nvidia.com/nouse-gputype",
        "nvidia.com/use-gpuuuid",
        "nvidia.com/nouse-gpuuuid",
    }
)
"""As in Volcano (`volcano-spec` §1.5), and those that plugins read."""
MAX_TEXT = 4096
_PRIORITY = re.compile(r"-?\d{1,9}", re.ASCII)


def _are_known(annotations: dict[str, str]) -> dict[str, str]:
    """The annotations in the order in which manifests write them."""
    names = ", ".join(sorted(POD_ANNOTATIONS))
    message = translate("The scheduler does not read this annotation of pods. It reads {names}.", names=names)
    problems = [Problem(name, message) for name in annotations if name not in POD_ANNOTATIONS]
    if not _PRIORITY.fullmatch(annotations.get(TASK_PRIORITY, "0")):
        problems.append(Problem(TASK_PRIORITY, translate("Must be an integer of at most nine digits, in quotes.")))
    if problems:
        raise InconsistentFields(problems)
    return dict(sorted(annotations.items()))


Annotations = Annotated[dict[str, Annotated[Text, Field(max_length=MAX_TEXT)]], Field(max_length=32)]
PodAnnotations = Annotated[Annotations, AfterValidator(_are_known)]


def select(annotations: Mapping[str, str]) -> dict[str, str]:
    """Those that pods have too."""
    return {name: text for name, text in annotations.items() if name in POD_ANNOTATIONS}


def select_valid(annotations: Mapping[str, str]) -> dict[str, str]:
    """Those that a task can have: of a pod in a cluster, whose annotations nobody checked."""
    found = select(annotations)
    return {
        name: text
        for name, text in found.items()
        if is_text(text) and len(text) <= MAX_TEXT and (name != TASK_PRIORITY or _PRIORITY.fullmatch(text))
    }


def is_preemptable(annotations: Mapping[str, str], *, default: str) -> bool:
    """Whether pods may be evicted. `default`: true for pods, false for jobs."""
    return annotations.get(PREEMPTABLE, default).lower() in ("true", "t", "1")


def priority_in_job(annotations: Mapping[str, str], *, default: int) -> int:
    """The priority of a pod among the pods of its job."""
    text = annotations.get(TASK_PRIORITY, "")
    return int(text) if text and _PRIORITY.fullmatch(text) else default
