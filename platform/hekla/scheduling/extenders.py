"""Extenders: programs outside Hekla that a scheduling policy lets decide (`engine.plugins.extender`).

The controller calls only addresses that the operator allows with `HEKLA_EXTENDERS`. Predictions call nothing: they
assume that extenders agree.
"""

from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import unquote, urlsplit

from django.conf import settings

from hekla.engine.policy import PluginOption, SchedulerPolicy

_PLUGIN = "extender"


def is_allowed(address: str) -> bool:
    """Whether `HEKLA_EXTENDERS` allows calls to this address: the same server, and a path below an allowed one."""
    return any(_is_below(address, allowed) for allowed in settings.EXTENDERS)


def _is_below(address: str, allowed: str) -> bool:
    try:
        target, base = urlsplit(address), urlsplit(allowed)
        servers = [(one.scheme, one.hostname, one.port, one.username, one.password) for one in (target, base)]
    except ValueError:
        return False
    path = base.path.rstrip("/")
    is_below = target.path == path or target.path.startswith(f"{path}/")
    return servers[0] == servers[1] and is_below and not {".", ".."} & set(unquote(target.path).split("/"))


def are_allowed(policy: SchedulerPolicy) -> bool:
    """Whether all extenders of this policy may be called."""
    return all(map(is_allowed, _prefixes(policy)))


def as_if_agreeing(policy: SchedulerPolicy) -> SchedulerPolicy:
    """The policy for predictions: an extender that would be called has no say."""
    if not any(_prefixes(policy)) or not are_allowed(policy):
        return policy
    return replace(policy, tiers=tuple(tuple(map(_agreeing, tier)) for tier in policy.tiers))


def _agreeing(option: PluginOption) -> PluginOption:
    if option.name != _PLUGIN:
        return option
    return replace(option, arguments={_PLUGIN: {**option.inner(_PLUGIN), "ignorable": True}})


def _prefixes(policy: SchedulerPolicy) -> Iterator[str]:
    """The addresses to which the policy's extenders add their verbs."""
    for tier in policy.tiers:
        for option in tier:
            if option.name == _PLUGIN:
                yield str(option.inner(_PLUGIN).get("urlPrefix", ""))
