"""Resolves the steps of a flow to the jobs to submit: finds templates, applies patches, assigns names."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from hekla.domain import formats
from hekla.domain.errors import Invalid, Problem
from hekla.domain.flows import FlowSpec, StepSpec
from hekla.domain.jobspec import JobSpec
from hekla.domain.validation import join, suggest


@dataclass(frozen=True, slots=True)
class ResolvedFlow:
    """The jobs by step, and warnings about fields of patches without effect."""

    jobs: Mapping[str, JobSpec]
    warnings: tuple[str, ...]


def resolve(spec: FlowSpec, templates: Mapping[str, JobSpec], names: Sequence[str]) -> ResolvedFlow:
    """The jobs of a flow. Raises Invalid with every problem and its path, for example `steps.1.patch.spec.maxRetry`.

    `templates`: those that the flow needs. `names`: of all existing templates, for error messages.
    """
    jobs: dict[str, JobSpec] = {}
    problems: list[Problem] = []
    warnings: list[str] = []
    for place, step in enumerate(spec.steps):
        here = join("steps", place)
        try:
            jobs[step.name], remarks = _job(spec, step, here, templates, names)
            warnings += [f"{here}.patch.{warning}" for warning in remarks]
        except Invalid as error:
            problems += error.problems
    problems += _unknown_tasks(spec, jobs)
    if problems:
        raise Invalid(problems)
    return ResolvedFlow(jobs, tuple(warnings))


def _job(
    spec: FlowSpec, step: StepSpec, here: str, templates: Mapping[str, JobSpec], names: Sequence[str]
) -> tuple[JobSpec, tuple[str, ...]]:
    job = step.job or templates.get(step.template_name)
    if job is None:
        field = "template" if step.template else "name"
        raise Invalid([Problem(join(here, field), _no_template(step.template_name, names))])
    remarks: tuple[str, ...] = ()
    if step.patch:
        with _below(join(here, "patch")):
            loaded = formats.apply_patch(job, step.patch)
            job, remarks = loaded.spec, loaded.warnings
    with _below(join(here, "job")):
        return JobSpec.parse({**job.document(), "name": spec.job_name(step.name)}), remarks


class _below:
    """Puts the paths of problems raised in the block below this path."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: object, _trace: object) -> None:
        if isinstance(error, Invalid):
            raise Invalid([Problem(join(self.path, problem.path), problem.message) for problem in error.problems])


def _no_template(name: str, names: Sequence[str]) -> str:
    sentence = _("Unknown template “%(name)s”.") % {"name": name}
    if hint := suggest(name, names):
        return sentence.removesuffix(".") + hint
    others = {"others": _(", ").join(names[:20]) or _("none")}
    return f"{sentence} " + _("Available: %(others)s.") % others


def _unknown_tasks(spec: FlowSpec, jobs: Mapping[str, JobSpec]) -> Iterator[Problem]:
    """Problems of probes with a task that the job of the step's dependency does not have."""
    for place, step in enumerate(spec.steps):
        for number, probe in enumerate(step.probes):
            for target in spec.waits[step.name]:
                names = [task.name for task in jobs[target].tasks] if target in jobs else [probe.task]
                if probe.task and probe.task not in names:
                    sentence = _("The job of step %(step)s has no task “%(task)s”. Its tasks: %(names)s.")
                    message = sentence % {"step": target, "task": probe.task, "names": _(", ").join(names)}
                    yield Problem(join("steps", place, "probes", number, "task"), message)
