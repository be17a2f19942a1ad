"""Compares the inputs that a policy's plugins and actions need with those that a cluster supplies."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hekla.domain.scheduling_inputs import Input
from hekla.engine import registry
from hekla.engine.inputs import Lack, Need, needs_of
from hekla.engine.policy import PluginOption, SchedulerPolicy


@dataclass(frozen=True, slots=True)
class PluginInputs:
    """The inputs of one plugin or action of a policy. `path`: where the policy names it.

    `supplied`: what it needs and gets; `lacking`: what it needs and does not get. `is_declared`: False for an external
    one that does not say what it needs.
    """

    path: str
    name: str
    supplied: tuple[Need, ...] = ()
    lacking: tuple[Need, ...] = ()
    is_declared: bool = True

    @property
    def lack(self) -> Lack | None:
        """The worst that happens; None if nothing is lacking."""
        return max((need.lack for need in self.lacking), key=lambda lack: lack.severity, default=None)


def inputs_of(policy: SchedulerPolicy, supplied: Mapping[Input, str]) -> tuple[PluginInputs, ...]:
    """The inputs of each action that needs some, and of each plugin, in the order of the policy."""
    actions = (
        _compared("actions", registry.actions()[name], _as_option(policy, name), policy, supplied)
        for name in dict.fromkeys(policy.actions)
    )
    plugins = (
        _compared(path, registry.plugins()[option.name], option, policy, supplied) for path, option in _plugins(policy)
    )
    return (*(one for one in actions if one.supplied or one.lacking or not one.is_declared), *plugins)


def _as_option(policy: SchedulerPolicy, name: str) -> PluginOption:
    return PluginOption(name, arguments=policy.configurations.get(name, {}))


def _plugins(policy: SchedulerPolicy) -> Iterator[tuple[str, PluginOption]]:
    for tier, options in enumerate(policy.tiers):
        for at, option in enumerate(options):
            yield f"tiers[{tier}].plugins[{at}].name", option


def _compared(
    path: str, extension: object, option: PluginOption, policy: SchedulerPolicy, supplied: Mapping[Input, str]
) -> PluginInputs:
    declared = needs_of(extension)
    needs = [need for need in declared or () if _is_needed(need, option, policy)]
    found = tuple(need for need in needs if need.input in supplied)
    lacking = tuple(need for need in needs if need.input not in supplied)
    return PluginInputs(path, option.name, found, lacking, declared is not None)


def _is_needed(need: Need, option: PluginOption, policy: SchedulerPolicy) -> bool:
    try:
        return need.when(option, policy)
    except Exception:  # the condition of an external plugin may raise anything
        return True
