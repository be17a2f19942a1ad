"""Apply the rows at the backend: start bound pods, stop stopping ones. Idempotent."""

import hmac
import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache, partial

from django.conf import settings

from hekla.apps.clusters import selectors as clusters
from hekla.apps.jobs import selectors, services
from hekla.apps.jobs.debug_spec import FAILED_COMMAND
from hekla.apps.jobs.facts import spec_of
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.jobs.services.decisions import EvictionReason, JobDecision
from hekla.apps.jobs.services.observations import Sighting
from hekla.apps.secrets import selectors as secrets
from hekla.backends.base import (
    EnvironmentSpec,
    NodeUnsuitable,
    PodKey,
    PodOrder,
    PodPriority,
    StartDelayed,
    StartRefused,
)
from hekla.controller import disruption_budgets, external_pods, start_delays
from hekla.controller.lease_context import LeaseContext
from hekla.controller.observations import key_of, of_their_tenants
from hekla.domain.cards import HeldCard
from hekla.domain.errors import NotFound
from hekla.domain.frameworks import settings_for, shares_addresses
from hekla.domain.job_kinds import SESSION
from hekla.domain.phases import PodPhase
from hekla.domain.placement import pod_fields, without_labels
from hekla.domain.secrets import fill_command
from hekla.domain.shell_text import command_line
from hekla.domain.volumes import is_mounted
from hekla.scheduling.job_faults import JobFaults

Hosts = dict[tuple[str, int], str]
Common = tuple[Hosts, Mapping[str, str], Pod | None]
"""The addresses of a job's replicas, and its secrets; those of the failed pod's job, if it continues where one failed;
that pod."""
log = logging.getLogger(__name__)


def apply_decisions(lease: LeaseContext, pods: Sequence[Pod], faults: JobFaults, *, now: datetime) -> None:
    """Start and stop these unfinished pods at the backend to match their rows."""
    disruption_budgets.protect(
        lease, external_pods.apply_decisions(lease, [pod for pod in pods if pod.job.is_external], now=now), now=now
    )
    pods = [pod for pod in pods if not pod.job.is_external]
    if stopping := [pod for pod in pods if pod.stopping]:
        _stop(lease, stopping, now)
    ready = [
        pod
        for pod in pods
        if pod.phase == PodPhase.BOUND and not pod.stopping and key_of(pod) not in lease.state.known_pods
    ]
    start_delays.record_delays(lease, _start(lease, ready, faults, now) if ready else {}, now=now)


def _start(lease: LeaseContext, pods: list[Pod], faults: JobFaults, now: datetime) -> dict[int, list[str]]:
    """Start pods job by job; orders are created one at a time to save memory.

    Returns why starts are delayed, by the row of the job.
    """
    ordered: dict[PodKey, Pod] = {}
    late: dict[int, list[str]] = defaultdict(list)
    misplaced: dict[Job, list[int]] = defaultdict(list)
    orders = _orders(lease, pods, ordered, faults, now)
    for order, error in lease.runner.start_many(orders, heartbeat=lease.ensure_leader):
        pod = ordered.pop(order.key)
        if error is None:
            lease.state.known_pods.add(order.key)
        elif isinstance(error, StartRefused):
            _refused(lease, pod, str(error), faults, now)
        else:
            if isinstance(error, StartDelayed):
                late[pod.job_id].append(str(error))
            elif isinstance(error, NodeUnsuitable):
                misplaced[pod.job].append(pod.pk)
            log.warning("could not start %s of %s, will try again: %s", pod, pod.job, error)
    _take_off_nodes(lease, misplaced, now)
    return late


def _take_off_nodes(lease: LeaseContext, misplaced: Mapping[Job, Sequence[int]], now: datetime) -> None:
    """Evict pods that cannot start on their nodes: their next attempts get others. Raises LeaseLost."""
    found = [
        JobDecision(job.pk, job.version, job.revision, evictions=dict.fromkeys(pods, EvictionReason("volume")))
        for job, pods in misplaced.items()
    ]
    services.commit(lease.cluster_id, lease.epoch, found, now=now)


def _orders(
    lease: LeaseContext, pods: list[Pod], ordered: dict[PodKey, Pod], faults: JobFaults, now: datetime
) -> Iterator[PodOrder]:
    """The orders of these pods; each pod is added to `ordered` by its key. Pods without an order are refused."""
    by_job: dict[Job, list[Pod]] = defaultdict(list)
    for pod in pods:
        by_job[pod.job].append(pod)
    set_labels = cache(partial(clusters.set_labels, lease.cluster_id))
    for job, waiting in by_job.items():
        common = cache(partial(_common, lease, job))
        for pod in () if faults.of(job) else waiting:
            try:
                order = faults.attempt(job, "start", partial(_order, pod, common, set_labels), now, raises=(NotFound,))
            except NotFound as missing:
                _refused(lease, pod, str(missing), faults, now)
            else:
                if order is None:
                    break
                ordered[order.key] = pod
                yield order


def _common(lease: LeaseContext, job: Job) -> Common:
    """What the orders of one job share. Raises NotFound if its secrets cannot be decrypted, or the files are gone."""
    failed = selectors.source_to_start_in(job) if job.kind == SESSION else None
    job = failed.job if failed else job
    spec = spec_of(job)
    hosts = selectors.addresses(job, lease.runner.address) if shares_addresses(spec) else {}
    return hosts, secrets.of_job(job.uid) if "openpai" in spec.plugins else {}, failed


def _order(pod: Pod, common: Callable[[], Common], set_labels: Callable[[], dict[str, dict[str, str]]]) -> PodOrder:
    """The order. `set_labels`: those that only Hekla's scheduler reads, by node."""
    order = order_of(pod.job, pod, *common())
    if order.placement.keys().isdisjoint({"nodeSelector", "affinity"}):  # most tasks
        return order
    return replace(order, placement=without_labels(order.placement, set_labels().get(pod.node, {})))


def order_of(
    job: Job, pod: Pod, hosts: Hosts, values: Mapping[str, str] | None = None, failed: Pod | None = None
) -> PodOrder:
    """The order to start this pod. Raises NotFound for a deleted environment.

    `hosts`: the addresses of the job's replicas, if its pods know them. `values`: the job's secrets, which the order
    contains in plain text. `failed`: the pod in whose files it continues; both are those of that pod's job then.
    """
    spec, origin = spec_of(job), failed or pod
    task, theirs = spec.task(pod.task), spec_of(origin.job)
    command, script = fill_command(theirs.task(origin.task).command, values or {})
    if failed:
        command, script = task.command, {**script, FAILED_COMMAND: command_line(command)}
    owner, secret = origin.job.owner.username, secret_of(origin.job)
    job_settings = settings_for(theirs, origin.task, origin.index, hosts, secret, owner=owner)
    requirements = clusters.environment_requirements(task.environment)
    return PodOrder(
        key=key_of(pod),
        node=pod.node,
        command=command,
        args=task.args,
        address=pod.address,
        env={**job_settings.env, **task.env, **script},
        files={**job_settings.files, **theirs.files},
        secrets={name: text for name, text in job_settings.secrets.items() if name not in theirs.files},
        hosts=job_settings.hosts,
        mounts=job_settings.mounts,
        volumes=[volume for volume in spec.volumes if is_mounted(task, volume.name)],
        volume_mounts=task.volume_mounts,
        resources=task.request,
        environment=EnvironmentSpec(task.environment, requirements) if task.environment else None,
        image=task.image,
        working_dir=task.working_dir,
        grace_seconds=task.grace_seconds,
        has_peers=len(hosts) > 1,
        is_closed=job_settings.is_closed,
        priority=PodPriority(spec.priority_class, job.priority) if spec.priority_class else None,
        ports=task.ports,
        labels=task.labels,
        placement=pod_fields(task),
        cards=[HeldCard(**card) for card in pod.cards],
        annotations=pod.annotations,
        settings=task.runtime_settings,
        freezes=spec.keep_failed_seconds is not None,
        frozen=key_of(failed) if failed else None,
    )


def secret_of(job: Job) -> bytes:
    """A secret shared by the pods of this job. It is derived from the console's secret key, and not stored."""
    return hmac.digest(settings.SECRET_KEY.encode(), f"job:{job.uid.hex}".encode(), "sha256")


def _refused(lease: LeaseContext, pod: Pod, message: str, faults: JobFaults, now: datetime) -> None:
    """Record the pod as failed, because the backend can never start it; the job's policies decide what follows."""
    sighting = Sighting(
        task=pod.task,
        index=pod.index,
        attempt=pod.attempt,
        phase=PodPhase.FAILED,
        at=now,
        reason="StartRefused",
        message=message,
    )
    faults.attempt(pod.job, "observe", partial(lease.observe, pod.job.uid, [sighting], now), now)


def _stop(lease: LeaseContext, pods: list[Pod], now: datetime) -> None:
    """Stop each pod. A bound pod that never started is settled: the backend will not start it any more."""
    pods = disruption_budgets.without_protected(lease, pods, now=now)
    by_key = {key_of(pod): pod for pod in pods}
    unstarted: dict[PodKey, int] = {}
    requests = ((key, pod.stop_reason) for key, pod in by_key.items())
    for (key, _reason), error in lease.runner.stop_many(requests, heartbeat=lease.ensure_leader):
        pod = by_key[key]
        if error is not None:
            log.warning("could not stop %s, will try again: %s", pod, error)
        elif pod.phase == PodPhase.BOUND and key not in lease.state.known_pods:
            unstarted[key] = pod.pk
    if unstarted:
        tenants = {key.job: key.tenant for key in unstarted}
        found = lease.backend.observe(lease.state.cursor).pods
        here = of_their_tenants(lease, found, lambda job: tenants.get(job, ""))
        started = {one.key for one in here if not one.phase.is_final}
        over = [pk for key, pk in unstarted.items() if key not in started]
        services.end_unstarted(lease.cluster_id, lease.epoch, over, address_of=lease.runner.address, now=now)
