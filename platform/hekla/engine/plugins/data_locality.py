"""Data locality: nodes that cache a job's data sets score higher.

A node's annotation `hekla.io/cached-datasets` and a job's annotation `hekla.io/datasets` list names, separated by
commas. The score is the part of the job's data sets that the node has, times 100, times the argument `weight`. The
default of 10 exceeds the usual scores together, because copying data takes longer than an uneven load costs.
"""

import numpy as np

from hekla.domain.scheduling_inputs import Input
from hekla.engine.columns import NodeTable, Rows, Vector
from hekla.engine.extension_points import ExtensionPoint
from hekla.engine.inputs import Lack, Need
from hekla.engine.job_info import PodInfo
from hekla.engine.policy import PluginOption
from hekla.engine.session import Session

CACHED, WANTED = "hekla.io/cached-datasets", "hekla.io/datasets"
NODE_ANNOTATIONS = (CACHED,)
_DEFAULT_WEIGHT = 10

NEEDS = (Need(Input.NODE_ANNOTATIONS, Lack.NOTHING), Need(Input.JOB_ANNOTATIONS, Lack.NOTHING))


def open_session(session: Session, option: PluginOption) -> None:
    """Score nodes."""
    weight = option.number("weight", _DEFAULT_WEIGHT)
    cached = [_names(node.annotations.get(CACHED, "")) for node in session.table.nodes]
    scores: dict[frozenset[str], Vector] = {}

    def score(pod: PodInfo, table: NodeTable, rows: Rows) -> Vector:
        wanted = _wanted(pod)
        if wanted not in scores:
            parts = [len(wanted & names) / len(wanted) if wanted else 0.0 for names in cached]
            scores[wanted] = np.array(parts).reshape(len(table)) * 100 * weight
        return scores[wanted][rows]

    session.register(ExtensionPoint.NODE_ORDER, option, score)
    session.register(ExtensionPoint.TASK_CLASS, option, _wanted)


def _wanted(pod: PodInfo) -> frozenset[str]:
    return _names(pod.job.group.annotations.get(WANTED, ""))


def _names(text: str) -> frozenset[str]:
    return frozenset(name.strip() for name in text.split(",") if name.strip())
