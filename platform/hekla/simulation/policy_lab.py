"""Experiments of the policy lab on the workload of a cluster: requested here, and run in a process of their own."""

import gzip
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from io import BytesIO
from typing import Any
from uuid import UUID

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.clusters.models import Cluster
from hekla.apps.forecasts import selectors as forecasts
from hekla.apps.policy_lab import selectors, services
from hekla.apps.policy_lab.models import LabRun, LabTrace
from hekla.apps.policy_lab.problems import LabProblem
from hekla.domain.errors import HeklaError, Invalid, Problem, Refused
from hekla.domain.translation import translate
from hekla.engine.model import QueueSpec
from hekla.lib import clock
from hekla.scheduling import cache, policies, policy_check
from hekla.simulation.lab import experiment, process
from hekla.simulation.lab.change import LabChange, UnknownNames, change_as_json, changed, read_change
from hekla.simulation.lab.experiment import Experiment
from hekla.simulation.lab.importers import FORMATS, InvalidTrace, NothingFits, examine, read_trace
from hekla.simulation.lab.simulated_run import Progress, RunBroken
from hekla.simulation.lab.workload import SECOND, Workload
from hekla.simulation.recorded_workload import WorkloadTooLarge, recorded_workload

Runs = Callable[[Experiment, Progress], Mapping[experiment.LabColumn, experiment.FinishedRun]]
_READ = 0.1
"""The part of the progress when the workload was read."""


_GZIP = b"\x1f\x8b"


class Unwanted(Exception):
    """Somebody cancelled or deleted the experiment."""


class TraceDeleted(Refused):
    """The trace of the experiment was deleted before it began."""


def start(
    cluster: Cluster,
    *,
    title: str,
    starts_at: datetime,
    ends_at: datetime,
    change: object,
    user: User,
    now: datetime,
    trace: LabTrace | None = None,
) -> LabRun:
    """Request an experiment with this change (JSON, see `lab.change`). Raises Forbidden, Invalid, Refused.

    `trace`: its jobs run, in its own period; None: the recorded ones of the period.
    """
    accounts.require(user, Permission.MANAGE_CLUSTERS)
    wanted = read_change(change)
    if wanted.policy:
        policy_check.parse_for(cluster, wanted.policy)
    _check_names(cluster, trace, wanted, now)
    return services.start(
        cluster,
        title=title,
        starts_at=trace.starts_at if trace else starts_at,
        ends_at=trace.ends_at if trace else ends_at,
        policy=policies.text_in_force(cluster),
        change=change_as_json(wanted),
        user=user,
        now=now,
        trace=trace,
    )


def _check_names(cluster: Cluster, trace: LabTrace | None, wanted: LabChange, now: datetime) -> None:
    """Raises Invalid for queues and nodes that the cluster, or the trace, does not have now."""
    if wanted.queues or wanted.nodes or wanted.removed or wanted.goal:
        state = cache.read_snapshot(cluster, now=now).state
        if trace is not None:
            state = replace(state, queues=tuple(map(QueueSpec, trace.queues)))
        changed(Workload(0, 1, state, ()), wanted)


def upload_trace(*, name: str, form: str, content: bytes, user: User, now: datetime) -> LabTrace:
    """Store a file of another scheduler as a workload, packed by gzip or not. Raises Forbidden, Invalid, Refused."""
    accounts.require(user, Permission.MANAGE_CLUSTERS)
    if form not in FORMATS:
        raise Invalid([Problem("format", translate("Must be one of {choices}.", choices=", ".join(FORMATS)))])
    try:
        plain = _unpacked(content)
        found = examine(BytesIO(plain), form)
    except InvalidTrace as error:
        raise Invalid([Problem("content", str(error))]) from error
    facts = {
        "format": form,
        "jobs": found.jobs,
        "pods": found.pods,
        "starts_at": datetime.fromtimestamp(found.starts / SECOND, UTC),
        "ends_at": datetime.fromtimestamp(found.ends / SECOND, UTC),
        "queues": list(found.queues),
        "notes": dict(found.notes),
        "first_unreadable": found.first_unreadable,
    }
    return services.store_trace(name=name.strip(), content=plain, facts=facts, user=user, now=now)


def _unpacked(content: bytes) -> bytes:
    """The file, of bounded size. Raises InvalidTrace."""
    if content.startswith(_GZIP):
        try:
            with gzip.open(BytesIO(content)) as packed:
                content = packed.read(services.MAX_TRACE_BYTES + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise InvalidTrace(translate("The file is no gzip file: {error}", error=error)) from error
    if len(content) > services.MAX_TRACE_BYTES:
        raise InvalidTrace(translate("The file has more than {mb} MiB.", mb=services.MAX_TRACE_BYTES // 2**20))
    return content


def execute(uid: UUID, attempt: int, runs: Runs = process.finish_all) -> bool:
    """Run an experiment that `claim` has begun, and store the result. Returns False if it is not wanted any more.

    Raises what is no fault of the experiment; its process then ends, and it may begin again.
    """
    row = selectors.by_uid(uid)
    if row is None or not services.beat(uid, attempt, 0.0, now=clock.now()):
        return False
    try:
        wanted = Experiment(
            _workload(row),
            row.policy,
            read_change(row.change),
        )
        finished = runs(wanted, lambda part: _report(uid, attempt, part))
        result = experiment.report(wanted, finished)
        if not row.trace_name:
            result["forecasts"] = _forecasts(row)
    except Unwanted:
        return False
    except (HeklaError, RunBroken, InvalidTrace) as error:
        return services.fail(uid, attempt, _problem_of(error), now=clock.now())
    return services.finish(uid, attempt, _rounded(result), now=clock.now())


def _workload(row: LabRun) -> Workload:
    """The recorded jobs, or those of its trace on the present nodes of the cluster."""
    now = clock.now()
    if not row.trace_name:
        return recorded_workload(row.cluster, row.starts_at, row.ends_at, now=now)
    found = selectors.trace_file(row.trace_id) if row.trace_id else None
    if found is None:
        raise TraceDeleted(translate("Its trace was deleted."))
    form, packed = found
    nodes = cache.read_snapshot(row.cluster, now=now).state.nodes
    return read_trace(BytesIO(zlib.decompress(packed)), form, nodes)


def _forecasts(row: LabRun) -> dict[str, int]:
    """How many of the start times held that people read in this period."""
    return asdict(forecasts.accuracy_between(row.cluster_id, row.starts_at, row.ends_at))


def _problem_of(error: Exception) -> LabProblem:
    match error:
        case WorkloadTooLarge():
            return error.problem
        case RunBroken():
            return LabProblem(error.code, error.values)
        case TraceDeleted():
            return LabProblem("trace_deleted")
        case NothingFits():
            return LabProblem("trace_fits_nowhere")
        case UnknownNames():
            code, names = ("unknown_queues", error.queues) if error.queues else ("unknown_nodes", error.nodes)
            return LabProblem(code, {"names": ", ".join(names)})
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
