"""Scheduler policies in Volcano's configuration format: actions, and plugins tier by tier."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from hekla.domain import yaml_text
from hekla.domain.errors import Invalid, Problem
from hekla.domain.translation import translate
from hekla.engine import registry

DEFAULT_POLICY_TEXT = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
"""
MAX_POLICY_BYTES = 100_000
MAX_POLICY_ENTRIES = 10_000
"""With expanded aliases."""
COMPATIBILITY = ("hekla", "volcano")
"""Whose behaviour applies where Hekla and Volcano differ (decision 0010); the first is the default."""
_RENAMED = {"numaaware": "numa-aware"}
"""Earlier names of plugins, which stored policies may have."""

SWITCHES = frozenset(
    {
        "enableJobOrder", "enableJobReady", "enableJobPipelined", "enableTaskOrder", "enablePreemptable",
        "enableReclaimable", "enablePreemptive", "enableQueueOrder", "enablePredicate", "enableBestNode",
        "enableNodeOrder", "enableTargetJob", "enableReservedNodes", "enableJobEnqueued", "enabledVictim",
        "enableJobStarving", "enabledOverused", "enabledAllocatable", "enabledHyperNodeOrder", "enabledSubJobReady",
        "enabledSubJobPipelined", "enabledSubJobOrder", "enabledHyperNodeGradient", "enableHierarchy",
        "enabledClusterOrder",
    }
)  # fmt: skip
_OFF_BY_DEFAULT = frozenset({"enableHierarchy", "enabledClusterOrder"})

Argument = bool | int | float | str | Sequence["Argument"] | Mapping[str, "Argument"]
MAX_DEPTH = 6
"""The maximum nesting of lists and mappings in arguments."""
_TRUTHS = dict.fromkeys(("1", "t", "true"), True) | dict.fromkeys(("0", "f", "false"), False)


@dataclass(frozen=True, slots=True)
class PluginOption:
    """A plugin in a tier. `switches`: only those in the policy; `default_on`: the value of the others."""

    name: str
    switches: Mapping[str, bool] = field(default_factory=dict)
    arguments: Mapping[str, Argument] = field(default_factory=dict)
    default_on: bool = True

    def has(self, switch: str) -> bool:
        """Whether a switch is on."""
        return self.switches.get(switch, self.default_on and switch not in _OFF_BY_DEFAULT)

    def number(self, name: str, default: float) -> float:
        """A numeric argument; a value of another type counts as absent."""
        return number(self.arguments.get(name), default)

    def whole(self, name: str, default: int) -> int:
        """A whole-number argument; a value of another type counts as absent."""
        value = self.arguments.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else default

    def truth(self, name: str, *, default: bool) -> bool:
        """A boolean argument, or a text that means one."""
        return is_true(self.arguments.get(name), default=default)

    def inner(self, name: str) -> Mapping[str, Argument]:
        """A mapping argument, written as one or with dotted names (`thresholds.cpu`)."""
        value = self.arguments.get(name)
        dotted = {key[len(name) + 1 :]: one for key, one in self.arguments.items() if key.startswith(f"{name}.")}
        return dotted | dict(value) if isinstance(value, Mapping) else dotted


@dataclass(frozen=True, slots=True)
class SchedulerPolicy:
    """A parsed policy."""

    actions: tuple[str, ...]
    tiers: tuple[tuple[PluginOption, ...], ...]
    configurations: Mapping[str, Mapping[str, Argument]] = field(default_factory=dict)
    compatibility: str = "hekla"

    @property
    def follows_volcano(self) -> bool:
        """Whether Volcano's behaviour applies where Hekla differs (decision 0010)."""
        return self.compatibility == "volcano"

    @property
    def reads_clock(self) -> bool:
        """Whether decisions may change although nothing but the time does."""
        names = (option.name for tier in self.tiers for option in tier)
        return registry.has_external(self.actions) or any(map(registry.reads_clock, names))


def is_true(value: Argument | None, *, default: bool) -> bool:
    """A boolean, or a text that means one (`volcano-spec` §3.1)."""
    if isinstance(value, str):
        return _TRUTHS.get(value.lower(), default)
    return value if isinstance(value, bool) else default


def number(value: Argument | None, default: float) -> float:
    """The value as a number, or the default if it is not a number."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else default


def parse(text: str) -> SchedulerPolicy:
    """Parse a YAML policy. Raises Invalid with every problem and its path."""
    document = _load(text)
    problems: list[Problem] = []
    actions = _actions(document.get("actions", ""), problems)
    tiers = tuple(_tier(tier, f"tiers[{at}]", problems) for at, tier in enumerate(_list(document, "tiers", problems)))
    configurations = _configurations(document, problems)
    compatibility = document.get("compatibility", COMPATIBILITY[0])
    if compatibility not in COMPATIBILITY:
        problems.append(
            Problem("compatibility", translate("Must be one of {choices}.", choices=", ".join(COMPATIBILITY)))
        )
    for key in sorted(set(document) - {"actions", "tiers", "configurations", "compatibility"}, key=str):
        message = translate("Unknown field. A policy has actions, tiers, configurations and compatibility.")
        problems.append(Problem(str(key), message))
    if problems:
        raise Invalid(problems)
    return SchedulerPolicy(actions, tiers, configurations, str(compatibility))


def _load(text: str) -> dict[str, Any]:
    if len(text.encode(errors="surrogatepass")) > MAX_POLICY_BYTES:
        raise Invalid([Problem("", translate("The policy is larger than {kb} kB.", kb=MAX_POLICY_BYTES // 1000))])
    try:
        yaml_text.require_bounded(text, MAX_POLICY_ENTRIES)
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        message = translate("Invalid YAML: {problem}.", problem=getattr(error, "problem", error))
        raise Invalid([Problem(where, message)]) from error
    except (ValueError, RecursionError) as error:  # bounds, or an impossible date or number
        raise Invalid([Problem("", translate("Invalid YAML: {problem}.", problem=error))]) from error
    if not isinstance(document, dict):
        raise Invalid([Problem("", translate("A policy is a YAML mapping with actions and tiers."))])
    return document


def _list(document: Mapping[str, Any], name: str, problems: list[Problem]) -> list[Any]:
    value = document.get(name) or []
    if isinstance(value, list):
        return value
    problems.append(Problem(name, translate("Must be a list.")))
    return []


def _actions(value: object, problems: list[Problem]) -> tuple[str, ...]:
    names = tuple(name.strip() for name in str(value or "").split(",") if name.strip())
    if not names:
        message = translate("At least one action is required, for example “enqueue, allocate, backfill”.")
        problems.append(Problem("actions", message))
    known = registry.actions()
    for name in names:
        if name not in known:
            those = ", ".join(sorted(known))
            message = translate("Unknown action “{name}”. Available: {names}.", name=name[:40], names=those)
            problems.append(Problem("actions", message))
    return names


def _tier(value: object, path: str, problems: list[Problem]) -> tuple[PluginOption, ...]:
    if not isinstance(value, dict) or not isinstance(value.get("plugins"), list):
        problems.append(Problem(path, translate("A tier is a mapping with a list of plugins.")))
        return ()
    return tuple(_plugin(p, f"{path}.plugins[{at}]", problems) for at, p in enumerate(value["plugins"]))


def _plugin(value: object, path: str, problems: list[Problem]) -> PluginOption:
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        problems.append(Problem(path, translate("A plugin is a mapping with a name.")))
        return PluginOption("")
    name: str = value["name"]
    name = _RENAMED.get(name, name)
    if name not in registry.plugins():
        known = ", ".join(sorted(registry.plugins()))
        message = translate("Unknown plugin “{name}”. Available: {names}.", name=name[:40], names=known)
        problems.append(Problem(f"{path}.name", message))
    switches = {}
    for key in sorted(set(value) - {"name", "arguments"}, key=str):
        if key not in SWITCHES:
            problems.append(Problem(f"{path}.{key}", translate("Unknown switch of the plugin.")))
        elif not isinstance(value[key], bool):
            problems.append(Problem(f"{path}.{key}", translate("A switch must be true or false.")))
        else:
            switches[key] = value[key]
    return PluginOption(name, switches, _arguments(value.get("arguments"), f"{path}.arguments", problems))


def _arguments(value: object, path: str, problems: list[Problem]) -> dict[str, Argument]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        problems.append(Problem(path, translate("Arguments are a mapping of names to values.")))
        return {}
    for name, argument in value.items():
        _check_argument(argument, f"{path}.{name}", problems)
    if value.get("onError", "skip") not in ("skip", "stop"):
        problems.append(Problem(f"{path}.onError", translate("The failure mode must be skip or stop.")))
    return {str(name): argument for name, argument in value.items()}


def _check_argument(value: object, path: str, problems: list[Problem], depth: int = 0) -> None:
    """Report a problem unless the value is a number, text, boolean, or lists and mappings of these."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if inner is not None and depth < MAX_DEPTH:
        for name, one in inner:
            _check_argument(one, f"{path}.{name}", problems, depth + 1)
    elif not isinstance(value, bool | int | float | str):
        message = translate("An argument is a number, a string, true or false, or a list or mapping of these.")
        problems.append(Problem(path, message))


def _configurations(document: Mapping[str, Any], problems: list[Problem]) -> dict[str, dict[str, Argument]]:
    found = {}
    for at, value in enumerate(_list(document, "configurations", problems)):
        path = f"configurations[{at}]"
        if not isinstance(value, dict) or not isinstance(value.get("name"), str):
            problems.append(Problem(path, translate("A configuration is a mapping with the name of an action.")))
            continue
        found[value["name"]] = _arguments(value.get("arguments"), f"{path}.arguments", problems)
    return found
