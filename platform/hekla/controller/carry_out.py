"""Carrying out what stands in the rows: start what is bound, stop what is to end. To do it twice changes nothing."""

import hmac
import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from uuid import UUID

from django.conf import settings

from hekla.apps.clusters import selectors as clusters
from hekla.apps.jobs import selectors, services
from hekla.apps.jobs.facts import spec_of
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.jobs.services.observations import Sighting
from hekla.apps.secrets import selectors as secrets
from hekla.backends.base import BackendError, Environment, PodOrder, StartRefused
from hekla.controller.observations import Hold, key_of
from hekla.domain.errors import NotFound
from hekla.domain.frameworks import settings_for
from hekla.domain.phases import PodPhase
from hekla.domain.secrets import filled

log = logging.getLogger(__name__)


def carry_out(hold: Hold, pods: Sequence[Pod], *, now: datetime) -> None:
    """Bring the backend to what the rows say of these pods: all that are not over."""
    _stop(hold, [pod for pod in pods if pod.stopping], now)
    by_job: dict[Job, list[Pod]] = defaultdict(list)
    for pod in pods:
        if pod.phase == PodPhase.BOUND and not pod.stopping and key_of(pod) not in hold.memory.seen:
            by_job[pod.job].append(pod)
    for job, waiting in by_job.items():
        _start(hold, job, waiting, now)


def _start(hold: Hold, job: Job, pods: list[Pod], now: datetime) -> None:
    hosts = selectors.addresses(job, hold.backend.address)
    values_of = cache(secrets.of_job) if "openpai" in spec_of(job).plugins else _none
    for pod in pods:
        try:
            hold.backend.start(order_of(job, pod, hosts, values_of(job.uid)))
            hold.memory.seen.add(key_of(pod))
        except (StartRefused, NotFound) as refusal:
            _refused(hold, pod, str(refusal), now)
        except BackendError as error:
            log.warning("could not start %s of %s, will try again: %s", pod, job, error)


def _none(_job: UUID) -> Mapping[str, str]:
    return {}


def order_of(
    job: Job, pod: Pod, hosts: dict[tuple[str, int], str], values: Mapping[str, str] | None = None
) -> PodOrder:
    """All that the backend needs to start this pod. Raises NotFound for an environment that is gone.

    `values` are the job's secrets; from here on they stand in what is to run.
    """
    spec = spec_of(job)
    task = spec.task(pod.task)
    command, script = filled(task.command, values or {})
    told = settings_for(spec, pod.task, pod.index, hosts, secret_of(job), owner=job.owner.username)
    requirements = clusters.environment_requirements(task.environment)
    return PodOrder(
        key=key_of(pod),
        node=pod.node,
        command=command,
        address=pod.address,
        env={**told.env, **task.env, **script},
        files={**told.files, **spec.files},
        secrets={name: text for name, text in told.secrets.items() if name not in spec.files},
        hosts=told.hosts,
        resources=task.request,
        environment=Environment(task.environment, requirements) if task.environment else None,
        image=task.image,
        working_dir=task.working_dir,
        grace_seconds=task.grace_seconds,
    )


def secret_of(job: Job) -> bytes:
    """What only pods of this job are told: made from the console's own secret, so it is kept nowhere."""
    return hmac.digest(settings.SECRET_KEY.encode(), f"job:{job.uid.hex}".encode(), "sha256")


def _refused(hold: Hold, pod: Pod, message: str, now: datetime) -> None:
    """The backend can never start this pod: it has failed, and the job's policies say what follows."""
    sighting = Sighting(
        task=pod.task,
        index=pod.index,
        attempt=pod.attempt,
        phase=PodPhase.FAILED,
        at=now,
        reason="StartRefused",
        message=message,
    )
    hold.observe(pod.job.uid, [sighting], now)


def _stop(hold: Hold, pods: list[Pod], now: datetime) -> None:
    """Ask each to end. One that was bound but never begun is over: the backend will not begin it any more."""
    never_begun = []
    for pod in pods:
        try:
            hold.backend.stop(key_of(pod), reason=pod.stop_reason)
        except BackendError as error:
            log.warning("could not stop %s, will try again: %s", pod, error)
            continue
        if pod.phase == PodPhase.BOUND and key_of(pod) not in hold.memory.seen:
            never_begun.append(pod.pk)
    if never_begun:
        services.settle(hold.cluster_id, hold.epoch, never_begun, address_of=hold.backend.address, now=now)
