"""The policy that a cluster is scheduled by: the newest of its versions, or the one that Hekla begins with."""

from functools import lru_cache

from hekla.apps.clusters import selectors
from hekla.apps.clusters.models import Cluster, PolicyVersion
from hekla.engine.policy import DEFAULT_POLICY_TEXT, SchedulerPolicy, parse

_parsed = lru_cache(maxsize=64)(parse)
"""One text is parsed once: the engine knows a policy again by being the very same object."""


def first() -> PolicyVersion:
    """What Hekla begins with, as the version before all others. It is no row."""
    return PolicyVersion(number=0, text=DEFAULT_POLICY_TEXT)


def text_in_force(cluster: Cluster) -> str:
    """As it was written."""
    return selectors.policy_text(cluster) or DEFAULT_POLICY_TEXT


def in_force(cluster: Cluster) -> SchedulerPolicy:
    """As the engine takes it."""
    return _parsed(text_in_force(cluster))
