"""Experiments of the policy lab on the workload of a cluster: requested here, and run in a process of their own."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any
from uuid import UUID

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.clusters.models import Cluster
from hekla.apps.forecasts import selectors as forecasts
from hekla.apps.policy_lab import selectors, services
from hekla.apps.policy_lab.models import LabRun
from hekla.apps.policy_lab.problems import LabProblem
from hekla.domain.errors import HeklaError
from hekla.lib import clock
from hekla.scheduling import cache, policies, policy_check
from hekla.simulation.lab import experiment, process
from hekla.simulation.lab.change import LabChange, change_as_json, changed, read_change
from hekla.simulation.lab.experiment import Experiment
from hekla.simulation.lab.simulated_run import Progress, RunBroken
from hekla.simulation.lab.workload import Workload
from hekla.simulation.recorded_workload import WorkloadTooLarge, recorded_workload

Runs = Callable[[Experiment, Progress], Mapping[experiment.LabColumn, experiment.FinishedRun]]
_READ = 0.1
"""The part of the progress when the workload was read."""


class Unwanted(Exception):
    """Somebody cancelled or deleted the experiment."""


def start(
    cluster: Cluster, *, title: str, starts_at: datetime, ends_at: datetime, change: object, user: User, now: datetime
) -> LabRun:
    """Request an experiment with this change (JSON, see `lab.change`). Raises Forbidden, Invalid, Refused."""
    accounts.require(user, Permission.MANAGE_CLUSTERS)
    wanted = read_change(change)
    if wanted.policy:
        policy_check.parse_for(cluster, wanted.policy)
    _check_names(cluster, wanted, now)
    return services.start(
        cluster,
        title=title,
        starts_at=starts_at,
        ends_at=ends_at,
        policy=policies.text_in_force(cluster),
        change=change_as_json(wanted),
        user=user,
        now=now,
    )


def _check_names(cluster: Cluster, wanted: LabChange, now: datetime) -> None:
    """Raises Invalid for queues and nodes that the cluster does not have now."""
    if wanted.queues or wanted.nodes or wanted.removed:
        changed(Workload(0, 1, cache.read_snapshot(cluster, now=now).state, ()), wanted)


def execute(uid: UUID, attempt: int, runs: Runs = process.finish_all) -> bool:
    """Run an experiment that `claim` has begun, and store the result. Returns False if it is not wanted any more.

    Raises what is no fault of the experiment; its process then ends, and it may begin again.
    """
    row = selectors.by_uid(uid)
    if row is None or not services.beat(uid, attempt, 0.0, now=clock.now()):
        return False
    try:
        wanted = Experiment(
            recorded_workload(row.cluster, row.starts_at, row.ends_at, now=clock.now()),
            row.policy,
            read_change(row.change),
        )
        finished = runs(wanted, lambda part: _report(uid, attempt, part))
        result = experiment.report(wanted, finished) | {"forecasts": _forecasts(row)}
    except Unwanted:
        return False
    except (HeklaError, RunBroken) as error:
        return services.fail(uid, attempt, _problem_of(error), now=clock.now())
    return services.finish(uid, attempt, _rounded(result), now=clock.now())


def _forecasts(row: LabRun) -> dict[str, int]:
    """How many of the start times held that people read in this period."""
    return asdict(forecasts.accuracy_between(row.cluster_id, row.starts_at, row.ends_at))


def _problem_of(error: HeklaError | RunBroken) -> LabProblem:
    if isinstance(error, WorkloadTooLarge):
        return error.problem
    if isinstance(error, RunBroken):
        return LabProblem(error.code, error.values)
    return LabProblem("refused", {"text": str(error)})


def _report(uid: UUID, attempt: int, part: float) -> None:
    if not services.beat(uid, attempt, _READ + (1 - _READ) * part, now=clock.now()):
        raise Unwanted


def _rounded(value: Any) -> Any:  # noqa: ANN401
    """The result with numbers of six digits: others mean nothing."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, Mapping):
        return {key: _rounded(one) for key, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, list | tuple) else value
