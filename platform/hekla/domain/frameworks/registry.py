"""The job plugins: lookup by name, validation of a job's arguments, and the settings of a pod."""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, TypeGuard

from hekla.domain.errors import Problem
from hekla.domain.frameworks.base import Framework, PodContext, PodSettings
from hekla.domain.frameworks.env import ENV
from hekla.domain.frameworks.flink import FLINK
from hekla.domain.frameworks.hcclrank import HCCLRANK
from hekla.domain.frameworks.horovod import HOROVOD
from hekla.domain.frameworks.indexed import INDEXED
from hekla.domain.frameworks.jax import JAX
from hekla.domain.frameworks.mindspore import MINDSPORE
from hekla.domain.frameworks.mpi import MPI
from hekla.domain.frameworks.mxnet import MXNET
from hekla.domain.frameworks.openpai import OPENPAI
from hekla.domain.frameworks.paddle import PADDLE
from hekla.domain.frameworks.pytorch import PYTORCH
from hekla.domain.frameworks.ray import RAY
from hekla.domain.frameworks.spark import SPARK
from hekla.domain.frameworks.ssh import SSH
from hekla.domain.frameworks.svc import SVC
from hekla.domain.frameworks.tensorflow import TENSORFLOW
from hekla.domain.frameworks.xgboost import XGBOOST
from hekla.domain.translation import translate
from hekla.domain.validation import join, quote, suggest

if TYPE_CHECKING:
    from hekla.domain.jobspec import JobSpec
    from hekla.domain.task_spec import TaskSpec

ENTRY_POINTS = "hekla.frameworks"
_BUILT_IN = (
    ENV,
    SVC,
    SSH,
    TENSORFLOW,
    PYTORCH,
    MPI,
    HOROVOD,
    MXNET,
    RAY,
    SPARK,
    FLINK,
    MINDSPORE,
    PADDLE,
    HCCLRANK,
    XGBOOST,
    JAX,
    INDEXED,
    OPENPAI,
)

Plugins = Mapping[str, Sequence[str]]


@cache
def load_frameworks() -> Mapping[str, Framework]:
    """All plugins by name. Errors in another package's plugin are raised here, at the start."""
    added = [entry.load() for entry in entry_points(group=ENTRY_POINTS)]
    return {framework.name: framework for framework in (*added, *_BUILT_IN)}


def check(plugins: Plugins, tasks: Sequence["TaskSpec"]) -> list[Problem]:
    """Problems in a job's plugins, each with its path (`pytorch.0`)."""
    return [problem for name, arguments in plugins.items() for problem in _check_one(name, arguments, tasks)]


def settings_for(
    spec: "JobSpec",
    task: str,
    index: int,
    hosts: Mapping[tuple[str, int], str],
    secret: bytes = b"",
    *,
    owner: str = "",
) -> PodSettings:
    """The settings that all plugins of `owner`'s job give one pod. `hosts`: the address of every (task, index)."""
    context = PodContext(spec, task, index, hosts, secret, owner)
    settings = PodSettings()
    for name, arguments in _in_force(spec.plugins).items():
        framework = load_frameworks()[name]
        settings |= framework.settings(context, framework.read(arguments)[0])
    return settings


def shares_addresses(spec: "JobSpec") -> bool:
    """Whether the job's pods get one another's addresses."""
    return any(load_frameworks()[name].tells_addresses for name in _in_force(spec.plugins))


def commands(plugins: Mapping[str, object]) -> Mapping[str, tuple[str, ...]]:
    """Default commands by task name. Plugins with wrong arguments give none."""
    commands_by_task: dict[str, tuple[str, ...]] = {}
    for name, arguments in plugins.items():
        if name in load_frameworks() and _are_words(arguments):
            options, problems = load_frameworks()[name].read(arguments)
            commands_by_task |= {} if problems else load_frameworks()[name].commands(options)
    return commands_by_task


def _are_words(value: object) -> TypeGuard[Sequence[str]]:
    return isinstance(value, list | tuple) and all(isinstance(word, str) for word in value)


def files(spec: "JobSpec") -> set[str]:
    """The paths of all files that plugins add to the job's pods."""
    return {path for task in spec.tasks for settings in _samples(spec, task).values() for path in settings.paths}


def remarks(spec: "JobSpec") -> list[Problem]:
    """Plugin arguments without effect, and plugin settings that the job overrides, each with its path."""
    found = [remark for name, arguments in spec.plugins.items() for remark in _remarks(name, arguments, spec.tasks)]
    overruled = [problem for place, task in enumerate(spec.tasks) for problem in _overruled(spec, task, place)]
    return [*found, *dict.fromkeys(overruled)]


def scaling_remarks(spec: "JobSpec") -> list[str]:
    """What running pods do not notice when the job is scaled: one sentence per plugin."""
    found = ((load_frameworks()[name], arguments) for name, arguments in spec.plugins.items())
    sentences = ((framework.name, framework.scaling(framework.read(arguments)[0])) for framework, arguments in found)
    return [f"{name}: {sentence}" for name, sentence in sentences if sentence]


def _remarks(name: str, arguments: Sequence[str], tasks: Sequence["TaskSpec"]) -> list[Problem]:
    framework, path = load_frameworks()[name], join("plugins", name)
    unheeded = [Problem(join(path, problem.path), problem.message) for problem in framework.unheeded(arguments)]
    return [*unheeded, *(Problem(path, text) for text in framework.remarks(tasks, framework.read(arguments)[0]))]


def _overruled(spec: "JobSpec", task: "TaskSpec", place: int) -> list[Problem]:
    found = []
    for plugin, settings in _samples(spec, task).items() if task.env or spec.files else ():
        message = translate("The plugin {plugin} sets this too. The value here takes precedence.", plugin=plugin)
        found += [Problem(join("tasks", place, "env", name), message) for name in settings.env if name in task.env]
        found += [Problem(join("files", path), message) for path in sorted(settings.paths) if path in spec.files]
    return found


def _samples(spec: "JobSpec", task: "TaskSpec") -> Mapping[str, PodSettings]:
    """Each plugin's settings for the first pod of a task, with made-up addresses and at most two replicas a task."""
    if not task.replicas:
        return {}
    few = [one.model_copy(update={"replicas": min(one.replicas, 2)}) for one in spec.tasks]
    anywhere = {(one.name, index): f"{one.name}-{index}" for one in few for index in range(one.replicas)}
    context = PodContext(spec.model_copy(update={"tasks": tuple(few)}), task.name, 0, anywhere)
    return {
        name: load_frameworks()[name].settings(context, load_frameworks()[name].read(arguments)[0])
        for name, arguments in _in_force(spec.plugins).items()
    }


def _check_one(name: str, arguments: Sequence[str], tasks: Sequence["TaskSpec"]) -> list[Problem]:
    framework = load_frameworks().get(name)
    if framework is None:
        hint = suggest(name, load_frameworks()) or translate(
            ". Available: {names}.", names=", ".join(sorted(load_frameworks()))
        )
        return [Problem(name, translate("Unknown plugin {name}{hint}", name=quote(name), hint=hint))]
    options, problems = framework.read(arguments)
    if problems:
        return [Problem(join(name, problem.path), problem.message) for problem in problems]
    return [Problem(name, sentence) for sentence in framework.problems(tasks, options)]


def _in_force(plugins: Plugins) -> Plugins:
    """The job's plugins, after those that they imply."""
    implied = [other for name in plugins for other in load_frameworks()[name].implies if other not in plugins]
    return {**dict.fromkeys(implied, ()), **plugins}
