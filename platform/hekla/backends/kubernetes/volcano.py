"""The backend `kubernetes`, scheduled by Volcano: it runs the jobs, and creates their pods.

Our objects are found by their labels. Pods get the labels of their job from their templates. Hekla labels each pod once
with its attempt number; after that it is like any other pod of ours.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from hekla.backends.base import BackendError, Inventory, PodKey, StartRefused
from hekla.backends.delegated import ActionUnsupported, DelegatedJobSize, JobReport, NewPod, PodReport, QueueOrder
from hekla.backends.kubernetes import names, volcano_state
from hekla.backends.kubernetes.api import BAD_REQUEST, CONFLICT, INVALID, NOT_FOUND, ApiError, Json
from hekla.backends.kubernetes.cluster import KubernetesCluster
from hekla.backends.kubernetes.layout import namespace_path
from hekla.backends.kubernetes.parts import KubernetesParts
from hekla.backends.kubernetes.pod_state import PodState
from hekla.backends.kubernetes.resource_paths import resource_path
from hekla.backends.kubernetes.volcano_manifests import VolcanoManifests, queue_manifest
from hekla.domain.jobspec import JobSpec
from hekla.domain.policies import LifecycleAction
from hekla.lib.once_property import once_property

log = logging.getLogger(__name__)
_BATCH, _SCHEDULING, _BUS = "batch.volcano.sh", "scheduling.volcano.sh", "bus.volcano.sh"
_KNOWN = {_BATCH: "v1alpha1", _SCHEDULING: "v1beta1", _BUS: "v1alpha1"}
"""The versions that Hekla writes. A server with only other versions rejects fields that it does not know."""
_REPEAT_SECONDS = 10.0
_REPEAT_RESTART_SECONDS = 60.0
"""Volcano deletes a Command before it acts on it, so a missing Command may be lost or still pending. Restarting a job
twice would cost more than waiting.
"""
_QUEUE_VALID_SECONDS = 30.0
_GROUP_DELAY_SECONDS = 5.0
_NO_COMMANDS = "The cluster does not know the Commands of Volcano, so nothing can be asked of this job there"


class VolcanoMissing(BackendError):
    """The server does not have an API group of Volcano."""


class VolcanoBackend(KubernetesCluster):
    """A cluster whose jobs Volcano runs. Only one of the processes that open it requests changes at a time."""

    @once_property
    def delegated(self) -> "VolcanoScheduling":
        return VolcanoScheduling(self.parts)

    def forget(self, keys: Sequence[PodKey]) -> None:
        """Save the logs of these pods. Volcano deletes the pods; it would treat a deletion by Hekla as an eviction."""
        wanted = set(keys)
        for pod in self.parts.cache.all():
            if pod.key in wanted:
                if pod.is_deleted:
                    self.parts.spool.promote_draft(pod.key)
                if self._tries_to_save_log(pod):
                    self.parts.cache.dismiss([pod])

    def _tries_to_save_log(self, pod: PodState) -> bool:
        try:
            self.parts.client.run_all(self.parts.pod_deletion.save_log, [pod])
        except BackendError as error:
            log.info("could not save the log of %s, will try again: %s", pod.name, error)
            return False
        return True

    def find_pod(self, key: PodKey) -> PodState | None:
        """Find the pod by its labels, because Volcano chose its name."""
        return next(iter(self.list_pods(names.selector(names.labels(self.parts.cluster, key)))), None)

    def remove(self, job: str, *, tenant: str = "") -> None:
        """Save the pods' logs, then delete the Job before its pods, because Volcano would create them again."""
        selector = names.selector(names.job_labels(self.parts.cluster, job))
        self.parts.client.run_all(self.parts.pod_deletion.save_log, self.list_pods(selector))
        for found in self.delegated.list_objects(selector):
            self.parts.api.delete(f"{self.delegated.jobs_path}/{found['metadata']['name']}")
        super().remove(job, tenant=tenant)

    def inventory(self, *, fresh: bool = True) -> Inventory:
        """Includes Volcano's Job objects."""
        there = super().inventory(fresh=fresh)
        listed = self.delegated.list_objects(f"{self.parts.ours},{names.JOB}")
        jobs = {one["metadata"]["labels"][names.JOB] for one in listed}
        return Inventory(there.alive, there.present | jobs, there.logged | jobs)


class VolcanoScheduling:
    """Implements `delegated.DelegatedScheduling`."""

    def __init__(self, parts: KubernetesParts) -> None:
        self._parts = parts
        self._manifests = VolcanoManifests(parts.cluster, parts.config)
        self._namespace = namespace_path(parts.config.namespace)
        self._has_listed = False
        self._versions: dict[str, str] = {}
        self._requested: dict[tuple[str, LifecycleAction], float] = {}  # until when not to repeat it
        self._applied: dict[str, tuple[QueueOrder, float]] = {}
        self._groupless: dict[str, float] = {}

    def list_new_pods(self) -> Sequence[NewPod]:
        """Pods of our jobs without an attempt label."""
        pages = self._parts.api.pages(f"{self._namespace}/pods", labelSelector=f"{self._parts.ours},!{names.ATTEMPT}")
        found = (volcano_state.new_pod(pod) for page in pages for pod in page.get("items") or ())
        return [pod for pod in found if pod is not None]

    def assign_attempt(self, pod: NewPod, key: PodKey) -> None:
        """By a label, if it is still the pod with this uid."""
        change = {"metadata": {"uid": pod.uid, "labels": names.labels(self._parts.cluster, key)}}
        try:
            self._parts.cache.put(self._parts.api.patch(f"{self._namespace}/pods/{pod.name}", change))
        except ApiError as error:
            if error.status not in (NOT_FOUND, CONFLICT):
                raise

    def list_pods(self, *, fresh: bool = False) -> Sequence[PodReport]:
        """From the watch after the first call; `fresh`: from the server as of now."""
        found = self._parts.cache.list_now()[0] if fresh or not self._has_listed else self._parts.cache.all()
        self._has_listed = True
        return [volcano_state.pod_report(pod) for pod in found]

    # Queues

    def apply_queue(self, order: QueueOrder) -> None:
        """Create or update the queue; compared again every 30 seconds, because others may have changed it."""
        known = self._applied.get(order.name)
        if known and known[0] == order and time.monotonic() - known[1] < _QUEUE_VALID_SECONDS:
            return
        version = self._version_of(_SCHEDULING)
        path, manifest = f"/apis/{version}/queues", queue_manifest(order, self._parts.cluster, version)
        found = self._create_once(path, manifest) or self._parts.api.get(f"{path}/{order.name}")
        change = volcano_state.queue_patch(found, manifest)
        if change and names.belongs_to(found, self._parts.cluster):
            self._parts.api.patch(f"{path}/{order.name}", change)
        self._applied[order.name] = order, time.monotonic()

    # Jobs

    def submit(self, job: str, spec: JobSpec, *, tenant: str) -> None:
        """Create the job, after its files and claims, because pods wait for them. No effect if it exists."""
        manifest, companions = self._manifests.job(job, spec, tenant)
        try:
            for kind, companion in companions:
                self._create_once(resource_path(self._namespace, kind), companion)
            self._parts.api.create(self.jobs_path, manifest, fieldValidation="Strict")
        except ApiError as error:
            if error.status in (INVALID, BAD_REQUEST):
                raise StartRefused(f"Volcano does not take this job, or what its pods mount: {error}") from error
            if error.status != CONFLICT:
                raise

    def request(self, job: str, action: LifecycleAction, *, restarts: int, heartbeat: Callable[[], None]) -> None:
        """Request the action by a Command, one at a time per job and action.

        Volcano deletes the pods that it ends together with their logs, so drafts of the logs are saved first. That may
        take long, so the job is read again afterwards.
        """
        if not self._due(job, action, restarts):
            return
        version = self._command_version()
        self._draft_logs([pod for pod in self._parts.cache.all() if pod.key.job == job], heartbeat)
        due = self._due(job, action, restarts)
        heartbeat()
        for found, request in due:
            self._create_command(found, action, version)
            pause = _REPEAT_RESTART_SECONDS if action is LifecycleAction.RESTART_JOB else _REPEAT_SECONDS
            self._requested = {known: until for known, until in self._requested.items() if until > time.monotonic()}
            self._requested[request] = time.monotonic() + pause

    def _due(self, job: str, action: LifecycleAction, restarts: int) -> list[tuple[Json, tuple[str, LifecycleAction]]]:
        """The job with the key of the request, unless it has restarted since or the request was made recently."""
        due = []
        for found in self.list_objects(names.selector(names.job_labels(self._parts.cluster, job))):
            status = found.get("status") or {}
            request = f"{found['metadata']['uid']} {status.get('version')}", action
            has_moved = int(status.get("retryCount") or 0) != restarts
            if not has_moved and time.monotonic() >= self._requested.get(request, 0.0):
                due.append((found, request))
        return due

    def _create_command(self, job: Json, action: LifecycleAction, version: str) -> None:
        """Create the Command. Raises ActionUnsupported if the server has no Commands."""
        path = f"/apis/{version}/namespaces/{self._parts.config.namespace}/commands"
        try:
            self._create_once(path, self._manifests.command(job, action, version))
        except ApiError as error:
            if error.status == NOT_FOUND:
                self._versions.pop(_BUS, None)
                raise ActionUnsupported(_NO_COMMANDS) from error
            raise

    def _command_version(self) -> str:
        try:
            return self._version_of(_BUS)
        except VolcanoMissing as error:
            raise ActionUnsupported(_NO_COMMANDS) from error

    def resize(self, job: str, size: DelegatedJobSize, *, heartbeat: Callable[[], None]) -> None:
        """Save drafts of the logs of pods that Volcano will delete (the highest indices), then resize the job."""
        own = (pod for pod in self._parts.cache.all() if pod.key.job == job)
        self._draft_logs([pod for pod in own if not size.has(pod.key.task, pod.key.index)], heartbeat)
        for found in self.list_objects(names.selector(names.job_labels(self._parts.cluster, job))):
            heartbeat()
            self._parts.api.patch(f"{self.jobs_path}/{found['metadata']['name']}", self._manifests.resized(found, size))

    def list_jobs(self) -> Mapping[str, JobReport]:
        """All jobs with the state of their PodGroups. Events are read only if a pending reason is missing."""
        listed = self.list_objects(f"{self._parts.ours},{names.JOB}")
        jobs = {one["metadata"]["labels"][names.JOB]: one for one in listed}
        groups = {one["metadata"]["labels"].get(names.JOB): one for one in self._groups()} if jobs else {}
        stuck = self._stuck({uid for uid, job in jobs.items() if volcano_state.lacks_group(job, groups.get(uid))})
        reports = {
            uid: replace(volcano_state.job_report(job, groups.get(uid)), is_stuck=uid in stuck)
            for uid, job in jobs.items()
        }
        unexplained = [uid for uid, report in reports.items() if volcano_state.needs_message(report)]
        if not unexplained:
            return reports
        messages = volcano_state.last_messages(self._events())
        return reports | {
            uid: volcano_state.with_message(reports[uid], messages, jobs[uid], groups.get(uid)) for uid in unexplained
        }

    def _stuck(self, groupless: set[str]) -> set[str]:
        """The jobs that have had no PodGroup for at least five seconds.

        Volcano kills a job by deleting its pods and then its PodGroup. At its next sync of the job it creates a new
        PodGroup. If it syncs before it notices the deletion, and its scheduler has set the old PodGroup back to Pending
        in between, it mistakes the old one for the new one. It then waits for it forever, because the deletion does not
        wake it.
        """
        now = time.monotonic()
        self._groupless = {uid: self._groupless.get(uid, now) for uid in groupless}
        return {uid for uid, since in self._groupless.items() if now - since >= _GROUP_DELAY_SECONDS}

    def _draft_logs(self, pods: Sequence[PodState], heartbeat: Callable[[], None]) -> None:
        if not pods:
            return
        for pod, error in self._parts.client.run_each(self._parts.pod_deletion.draft_log, pods, heartbeat):
            if error is not None:
                log.info("could not draft the log of %s: %s", pod.name, error)

    # The server

    def _create_once(self, path: str, manifest: Json) -> Json | None:
        """Create the object. Returns it, or None if it exists already."""
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
        path = f"/apis/{self._version_of(_SCHEDULING)}/namespaces/{self._parts.config.namespace}/podgroups"
        pages = self._parts.api.pages(path, labelSelector=self._parts.ours)
        return [group for page in pages for group in page.get("items") or ()]

    def _events(self) -> list[Json]:
        """Warnings about jobs, and all events of PodGroups; Volcano reports there why a job does not start."""
        selectors = ("involvedObject.kind=PodGroup", "involvedObject.kind=Job,type=Warning")
        pages = (
            page for one in selectors for page in self._parts.api.pages(f"{self._namespace}/events", fieldSelector=one)
        )
        return [event for page in pages for event in page.get("items") or ()]

    def _version_of(self, group: str) -> str:
        """The group with the version to use on this server. Raises VolcanoMissing if it does not have the group."""
        if group not in self._versions:
            try:
                served = self._parts.api.get(f"/apis/{group}")
            except ApiError as error:
                if error.status == NOT_FOUND:
                    raise VolcanoMissing(
                        f"The cluster does not know {group}: Volcano is not installed there"
                    ) from error
                raise
            known = f"{group}/{_KNOWN[group]}"
            has_known = any(one["groupVersion"] == known for one in served["versions"])
            self._versions[group] = known if has_known else served["preferredVersion"]["groupVersion"]
        return self._versions[group]
