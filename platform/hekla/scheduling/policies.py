"""The scheduler policy of a cluster: its newest version, or Hekla's default."""

from functools import lru_cache

from hekla.apps.clusters import selectors
from hekla.apps.clusters.models import Cluster, PolicyVersion
from hekla.engine.policy import DEFAULT_POLICY_TEXT, SchedulerPolicy, parse
from hekla.scheduling import extenders

_parsed = lru_cache(maxsize=64)(parse)
"""Each text is parsed once: the engine recognizes an unchanged policy by the identity of the object."""
_agreeing = lru_cache(maxsize=64)(lambda text: extenders.as_if_agreeing(_parsed(text)))


def first() -> PolicyVersion:
    """The default policy, as the version before all others. It is not in the database."""
    return PolicyVersion(number=0, text=DEFAULT_POLICY_TEXT)


def text_in_force(cluster: Cluster) -> str:
    """The text of the policy in force."""
    return selectors.policy_text(cluster) or DEFAULT_POLICY_TEXT


def parsed(text: str) -> SchedulerPolicy:
    """The parsed policy; the same object for the same text."""
    return _parsed(text)


def in_force(cluster: Cluster) -> SchedulerPolicy:
    """The parsed policy in force."""
    return _parsed(text_in_force(cluster))


def for_predictions(cluster: Cluster) -> SchedulerPolicy:
    """The policy in force, for simulations, which call no extender."""
    return _agreeing(text_in_force(cluster))
