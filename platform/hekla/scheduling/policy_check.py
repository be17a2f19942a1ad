"""Checks a policy against what its cluster supplies, before it is activated and for its page.

A policy cannot be activated if one of its plugins would refuse all work, or make wrong decisions, for want of an input.
A plugin that has no effect is a warning. A policy that is active already stays so: only its warnings are shown.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from django.utils.translation import gettext as _

from hekla.apps.clusters.models import Cluster
from hekla.apps.sentences import together
from hekla.domain.errors import Invalid, Problem
from hekla.domain.scheduling_inputs import Input
from hekla.engine import input_check
from hekla.engine.input_check import PluginInputs
from hekla.engine.inputs import Lack, Need
from hekla.engine.policy import SchedulerPolicy, parse
from hekla.scheduling import policies
from hekla.scheduling.supplies import supplied


@dataclass(frozen=True, slots=True)
class PolicyWarning:
    """An input that a plugin of the policy needs and does not get. `path`: where the policy names the plugin."""

    path: str
    plugin: str
    input: Input
    lack: Lack
    message: str


def parse_for(cluster: Cluster, text: str) -> SchedulerPolicy:
    """Parse a policy to activate in this cluster. Raises Invalid, also for plugins that cannot work there."""
    policy = parse(text)
    forbidden = [one for one in warnings(cluster, policy) if one.lack.forbids]
    if forbidden:
        raise Invalid([Problem(one.path, one.message) for one in forbidden])
    return policy


def warnings(cluster: Cluster, policy: SchedulerPolicy) -> list[PolicyWarning]:
    """What people should know about the inputs of a policy in this cluster, in the order of the policy."""
    return warnings_about(inputs_of(cluster, policy, supplied(cluster, policy)))


def warnings_in_force(cluster: Cluster) -> list[PolicyWarning]:
    """The warnings of the active policy; none if a plugin of it is no longer installed."""
    try:
        return warnings(cluster, policies.in_force(cluster))
    except Invalid:
        return []


def inputs_of(cluster: Cluster, policy: SchedulerPolicy, sources: Mapping[Input, str]) -> tuple[PluginInputs, ...]:
    """The inputs of each plugin of a policy in this cluster; none if the cluster has a scheduler of its own.

    `sources`: what the cluster supplies to the policy.
    """
    return () if cluster.leads_jobs else input_check.inputs_of(policy, sources)


def warnings_about(found: Iterable[PluginInputs]) -> list[PolicyWarning]:
    """What people should know about these inputs."""
    return list(_warnings(found))


def _warnings(found: Iterable[PluginInputs]) -> Iterator[PolicyWarning]:
    for one in found:
        for need in one.lacking:
            if need.lack.is_noteworthy:
                yield PolicyWarning(one.path, one.name, need.input, need.lack, _message(one.name, need))


def _message(name: str, need: Need) -> str:
    sentence = _("“%(plugin)s” needs an input that this cluster does not supply: %(input)s.")
    return together([sentence % {"plugin": name, "input": need.input.label}, need.message])
