"""Which job plugins there are, whether a job asks for them rightly, and what all of them set for a pod."""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from hekla.domain.errors import Problem
from hekla.domain.frameworks.base import Framework, Place, PodSettings
from hekla.domain.frameworks.env import ENV
from hekla.domain.frameworks.indexed import INDEXED
from hekla.domain.frameworks.jax import JAX
from hekla.domain.frameworks.pytorch import PYTORCH
from hekla.domain.frameworks.svc import SVC
from hekla.domain.frameworks.tensorflow import TENSORFLOW
from hekla.domain.frameworks.xgboost import XGBOOST
from hekla.domain.validation import join, nearest, shown

if TYPE_CHECKING:
    from hekla.domain.jobspec import JobSpec, TaskSpec

ENTRY_POINTS = "hekla.frameworks"
_BUILT_IN = (ENV, INDEXED, SVC, TENSORFLOW, PYTORCH, XGBOOST, JAX)

Plugins = Mapping[str, Sequence[str]]


@cache
def known() -> Mapping[str, Framework]:
    """Every plugin by its name. Raises what a broken package raises, so that it is noticed at the start."""
    added = [entry.load() for entry in entry_points(group=ENTRY_POINTS)]
    return {framework.name: framework for framework in (*added, *_BUILT_IN)}


def check(plugins: Plugins, tasks: Sequence["TaskSpec"]) -> list[Problem]:
    """What is wrong with a job's plugins, each with its path (`pytorch.0`)."""
    return [problem for name, arguments in plugins.items() for problem in _check_one(name, arguments, tasks)]


def settings_for(spec: "JobSpec", task: str, index: int, hosts: Mapping[tuple[str, int], str]) -> PodSettings:
    """What the job's plugins set for one pod. `hosts` gives the address of every (task, index) of the job."""
    place = Place(spec, task, index, hosts)
    settings = PodSettings()
    for name, arguments in _in_force(spec.plugins).items():
        framework = known()[name]
        settings |= framework.settings(place, framework.read(arguments)[0])
    return settings


def _check_one(name: str, arguments: Sequence[str], tasks: Sequence["TaskSpec"]) -> list[Problem]:
    framework = known().get(name)
    if framework is None:
        hint = nearest(name, known()) or f"; there are {', '.join(sorted(known()))}."
        return [Problem(name, f"There is no plugin {shown(name)}{hint}")]
    options, problems = framework.read(arguments)
    if problems:
        return [Problem(join(name, problem.path), problem.message) for problem in problems]
    return [Problem(name, sentence) for sentence in framework.problems(tasks, options)]


def _in_force(plugins: Plugins) -> Plugins:
    """The plugins that a job asks for, behind those that they imply."""
    implied = [other for name in plugins for other in known()[name].implies if other not in plugins]
    return {**dict.fromkeys(implied, ()), **plugins}
