"""The backend `kubernetes`, scheduled by Volcano: jobs are its own, and so are the pods that it makes of them.

What is ours is found by its labels. Pods bear those of their job from their templates; the number of the attempt is put
onto each once, and then it is a pod like any of ours.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from hekla.backends.base import BackendError, Inventory, PodKey, StartRefused
from hekla.backends.delegated import ActionUnsupported, JobReport, JobSize, NewPod, PodReport, QueueOrder
from hekla.backends.kubernetes import names, volcano_reading
from hekla.backends.kubernetes.api import BAD_REQUEST, CONFLICT, INVALID, NOT_FOUND, ApiError, Json
from hekla.backends.kubernetes.cluster import KubernetesCluster
from hekla.backends.kubernetes.parts import KubernetesParts
from hekla.backends.kubernetes.places import path
from hekla.backends.kubernetes.reading import Seen
from hekla.backends.kubernetes.volcano_manifests import VolcanoManifests, queue_manifest
from hekla.domain.jobspec import JobSpec
from hekla.domain.policies import LifecycleAction

log = logging.getLogger(__name__)
_BATCH, _SCHEDULING, _BUS = "batch.volcano.sh", "scheduling.volcano.sh", "bus.volcano.sh"
_KNOWN = {_BATCH: "v1alpha1", _SCHEDULING: "v1beta1", _BUS: "v1alpha1"}
"""The versions that we write; where a server has others only, it says itself what it does not know of ours."""
_ASK_AGAIN_SECONDS = 10.0
_RESTART_AGAIN_SECONDS = 60.0
"""Volcano deletes a Command before it does what it says, so one that is gone may be lost or not done yet. To restart
twice would cost more than to wait.
"""
_QUEUE_HOLDS_SECONDS = 30.0
_GROUP_COMES_SECONDS = 5.0
_NO_COMMANDS = "The cluster does not know the Commands of Volcano, so nothing can be asked of this job there"


class NotInstalled(BackendError):
    """The server does not know a group of Volcano's API."""


class VolcanoBackend(KubernetesCluster):
    """A cluster whose jobs Volcano runs. Any number of processes may open it; one of them leads at a time."""

    @cached_property
    def delegated(self) -> "VolcanoScheduling":
        return VolcanoScheduling(self.parts)

    def forget(self, keys: Sequence[PodKey]) -> None:
        """Keep their logs. The pods are left to Volcano, which would take their deletion for an eviction."""
        wanted = set(keys)
        for pod in self.parts.cache.all():
            if pod.key in wanted:
                if pod.is_gone:
                    self.parts.spool.keep_draft(pod.key)
                if self._tries_to_keep_log(pod):
                    self.parts.cache.dismiss([pod])

    def _tries_to_keep_log(self, pod: Seen) -> bool:
        try:
            self.parts.client.run_all(self.parts.ending.keep_log, [pod])
        except BackendError as error:
            log.info("could not keep the log of %s, will try again: %s", pod.name, error)
            return False
        return True

    def find_pod(self, key: PodKey) -> Seen | None:
        """By its labels: Volcano chose its name."""
        return next(iter(self.list_pods(names.selector(names.labels(self.parts.cluster, key)))), None)

    def remove(self, job: str, *, tenant: str = "") -> None:
        """The Job first, so that nobody makes its pods again; they are deleted with their logs kept."""
        wanted = names.selector(names.job_labels(self.parts.cluster, job))
        self.parts.client.run_all(self.parts.ending.keep_log, self.list_pods(wanted))
        for found in self.delegated.list_objects(wanted):
            self.parts.api.delete(f"{self.delegated.jobs_path}/{found['metadata']['name']}")
        super().remove(job, tenant=tenant)

    def inventory(self, *, fresh: bool = True) -> Inventory:
        """With the jobs themselves."""
        there = super().inventory(fresh=fresh)
        listed = self.delegated.list_objects(f"{self.parts.ours},{names.JOB}")
        jobs = {one["metadata"]["labels"][names.JOB] for one in listed}
        return Inventory(there.alive, there.kept | jobs, there.logged | jobs)


class VolcanoScheduling:
    """Implements `delegated.DelegatedScheduling`."""

    def __init__(self, parts: KubernetesParts) -> None:
        self._parts = parts
        self._volcano = VolcanoManifests(parts.cluster, parts.config)
        self._place = path(parts.config.namespace)
        self._has_listed = False
        self._versions: dict[str, str] = {}
        self._asked: dict[tuple[str, LifecycleAction], float] = {}  # until when nobody asks again
        self._applied: dict[str, tuple[QueueOrder, float]] = {}
        self._groupless: dict[str, float] = {}

    def list_new_pods(self) -> Sequence[NewPod]:
        """Pods of our jobs without a number."""
        pages = self._parts.api.pages(f"{self._place}/pods", labelSelector=f"{self._parts.ours},!{names.ATTEMPT}")
        found = (volcano_reading.new_pod(pod) for page in pages for pod in page.get("items") or ())
        return [pod for pod in found if pod is not None]

    def assign_attempt(self, pod: NewPod, key: PodKey) -> None:
        """Label it, if it is still that pod."""
        change = {"metadata": {"uid": pod.uid, "labels": names.labels(self._parts.cluster, key)}}
        try:
            self._parts.cache.put(self._parts.api.patch(f"{self._place}/pods/{pod.name}", change))
        except ApiError as error:
            if error.status not in (NOT_FOUND, CONFLICT):
                raise

    def list_pods(self, *, fresh: bool = False) -> Sequence[PodReport]:
        """From the watch, once it has begun; `fresh`: as the server has them at this moment."""
        found = self._parts.cache.list_now()[0] if fresh or not self._has_listed else self._parts.cache.all()
        self._has_listed = True
        return [volcano_reading.report(pod) for pod in found]

    # Queues

    def apply_queue(self, order: QueueOrder) -> None:
        """Looked at again from time to time, as somebody may have changed it."""
        known = self._applied.get(order.name)
        if known and known[0] == order and time.monotonic() - known[1] < _QUEUE_HOLDS_SECONDS:
            return
        version = self._version_of(_SCHEDULING)
        place, manifest = f"/apis/{version}/queues", queue_manifest(order, self._parts.cluster, version)
        found = self._create_once(place, manifest) or self._parts.api.get(f"{place}/{order.name}")
        change = volcano_reading.difference(found.get("spec") or {}, manifest["spec"])
        if change and names.is_of(found, self._parts.cluster):
            self._parts.api.patch(f"{place}/{order.name}", {"spec": change})
        self._applied[order.name] = order, time.monotonic()

    # Jobs

    def submit(self, job: str, spec: JobSpec) -> None:
        """Files and claims first, since pods wait for them. Whoever submitted it before needs nothing more."""
        manifest, companions = self._volcano.job(job, spec)
        try:
            for kind, companion in companions:
                self._create_once(f"{self._place}/{kind}", companion)
            self._parts.api.create(self.jobs_path, manifest, fieldValidation="Strict")
        except ApiError as error:
            if error.status in (INVALID, BAD_REQUEST):
                raise StartRefused(f"Volcano does not take this job, or what its pods mount: {error}") from error
            if error.status != CONFLICT:
                raise

    def request(self, job: str, action: LifecycleAction, *, restarts: int, heartbeat: Callable[[], None]) -> None:
        """By a Command of which there is one at a time.

        What it ends takes its log along, so that is drafted before. This may take long, so the job is looked at again.
        """
        if not self._due(job, action, restarts):
            return
        version = self._command_version()
        self._draft_logs([pod for pod in self._parts.cache.all() if pod.key.job == job], heartbeat)
        due = self._due(job, action, restarts)
        heartbeat()
        for found, asked in due:
            self._command(found, action, version)
            patience = _RESTART_AGAIN_SECONDS if action is LifecycleAction.RESTART_JOB else _ASK_AGAIN_SECONDS
            self._asked = {one: until for one, until in self._asked.items() if until > time.monotonic()}
            self._asked[asked] = time.monotonic() + patience

    def _due(self, job: str, action: LifecycleAction, restarts: int) -> list[tuple[Json, tuple[str, LifecycleAction]]]:
        """The job, with what it is to be asked, unless it has restarted since or was asked lately."""
        due = []
        for found in self.list_objects(names.selector(names.job_labels(self._parts.cluster, job))):
            status = found.get("status") or {}
            asked = f"{found['metadata']['uid']} {status.get('version')}", action
            has_moved = int(status.get("retryCount") or 0) != restarts
            if not has_moved and time.monotonic() >= self._asked.get(asked, 0.0):
                due.append((found, asked))
        return due

    def _command(self, job: Json, action: LifecycleAction, version: str) -> None:
        """Raises NotAskable where this server knows no Commands."""
        place = f"/apis/{version}/namespaces/{self._parts.config.namespace}/commands"
        try:
            self._create_once(place, self._volcano.command(job, action, version))
        except ApiError as error:
            if error.status == NOT_FOUND:
                self._versions.pop(_BUS, None)
                raise ActionUnsupported(_NO_COMMANDS) from error
            raise

    def _command_version(self) -> str:
        try:
            return self._version_of(_BUS)
        except NotInstalled as error:
            raise ActionUnsupported(_NO_COMMANDS) from error

    def resize(self, job: str, size: JobSize, *, heartbeat: Callable[[], None]) -> None:
        """Volcano makes pods that are missing, and deletes those with the highest numbers: their logs are drafted."""
        own = (pod for pod in self._parts.cache.all() if pod.key.job == job)
        self._draft_logs([pod for pod in own if not size.has(pod.key.task, pod.key.index)], heartbeat)
        for found in self.list_objects(names.selector(names.job_labels(self._parts.cluster, job))):
            heartbeat()
            self._parts.api.patch(f"{self.jobs_path}/{found['metadata']['name']}", self._volcano.resized(found, size))

    def list_jobs(self) -> Mapping[str, JobReport]:
        """Each with what its PodGroup says; events are asked only where that is not enough."""
        listed = self.list_objects(f"{self._parts.ours},{names.JOB}")
        jobs = {one["metadata"]["labels"][names.JOB]: one for one in listed}
        groups = {one["metadata"]["labels"].get(names.JOB): one for one in self._groups()} if jobs else {}
        forgotten = self._forgotten(
            {uid for uid, job in jobs.items() if volcano_reading.lacks_group(job, groups.get(uid))}
        )
        reports = {
            uid: replace(volcano_reading.job_report(job, groups.get(uid)), is_forgotten=uid in forgotten)
            for uid, job in jobs.items()
        }
        mute = [uid for uid, told in reports.items() if volcano_reading.needs_words(told)]
        if not mute:
            return reports
        said = volcano_reading.last_words(self._events())
        return reports | {
            uid: volcano_reading.with_words(reports[uid], said, jobs[uid], groups.get(uid)) for uid in mute
        }

    def _forgotten(self, groupless: set[str]) -> set[str]:
        """Those that have been without a PodGroup for long.

        Volcano kills a job by deleting its pods and then its PodGroup, and makes the PodGroup anew when it looks at the
        job next. Where it looks before it has seen the deletion, and its scheduler has put the old one back to Pending
        in between, it takes that for the new one and waits for it, for ever, since no deletion of one wakes it.
        """
        now = time.monotonic()
        self._groupless = {uid: self._groupless.get(uid, now) for uid in groupless}
        return {uid for uid, since in self._groupless.items() if now - since >= _GROUP_COMES_SECONDS}

    def _draft_logs(self, pods: Sequence[Seen], heartbeat: Callable[[], None]) -> None:
        if not pods:
            return
        for pod, error in self._parts.client.run_each(self._parts.ending.draft_log, pods, heartbeat):
            if error is not None:
                log.info("could not draft the log of %s: %s", pod.name, error)

    # The server

    def _create_once(self, path: str, manifest: Json) -> Json | None:
        """The object that was made; None: it is there already."""
        try:
            return self._parts.api.create(path, manifest)
        except ApiError as error:
            if error.status == CONFLICT and error.reason == "AlreadyExists":
                return None
            raise

    @property
    def jobs_path(self) -> str:
        return f"/apis/{self._version_of(_BATCH)}/namespaces/{self._parts.config.namespace}/jobs"

    def list_objects(self, selector: str) -> list[Json]:
        pages = self._parts.api.pages(self.jobs_path, labelSelector=selector)
        return [job for page in pages for job in page.get("items") or ()]

    def _groups(self) -> list[Json]:
        place = f"/apis/{self._version_of(_SCHEDULING)}/namespaces/{self._parts.config.namespace}/podgroups"
        pages = self._parts.api.pages(place, labelSelector=self._parts.ours)
        return [group for page in pages for group in page.get("items") or ()]

    def _events(self) -> list[Json]:
        """Warnings about jobs, and all about their groups, where Volcano tells as usual why one does not begin."""
        wanted = ("involvedObject.kind=PodGroup", "involvedObject.kind=Job,type=Warning")
        pages = (page for one in wanted for page in self._parts.api.pages(f"{self._place}/events", fieldSelector=one))
        return [event for page in pages for event in page.get("items") or ()]

    def _version_of(self, group: str) -> str:
        """Group and version as this server has them. Raises BackendError where it has no such group."""
        if group not in self._versions:
            try:
                told = self._parts.api.get(f"/apis/{group}")
            except ApiError as error:
                if error.status == NOT_FOUND:
                    raise NotInstalled(f"The cluster does not know {group}: Volcano is not installed there") from error
                raise
            ours = f"{group}/{_KNOWN[group]}"
            has_ours = any(one["groupVersion"] == ours for one in told["versions"])
            self._versions[group] = ours if has_ours else told["preferredVersion"]["groupVersion"]
        return self._versions[group]
