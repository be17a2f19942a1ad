"""Jobs, attempts and tasks as JSON in OpenPAI's form. Times are Unix times in milliseconds."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from hekla.api.openpai import states
from hekla.apps.jobs import selectors
from hekla.apps.jobs.facts import spec_of
from hekla.apps.jobs.models import Job, Pod
from hekla.domain.formats.openpai.extras import priority_class
from hekla.domain.frameworks import load_frameworks
from hekla.domain.frameworks.openpai import DEVICE, TaskRole, ports_of, roles_of
from hekla.domain.phases import JobPhase
from hekla.domain.resources import parse_quantity
from hekla.domain.task_spec import TaskSpec

Shape = dict[str, Any]
ROOT = "/rest-server/api/v2/jobs"
_SHARED = (
    "username", "state", "subState", "executionType", "retries", "retryDetails", "retryDelayTime",
    "submissionTime", "createdTime", "launchedTime", "completedTime", "virtualCluster",
)  # fmt: skip


def milliseconds(at: datetime | None) -> int | None:
    """The Unix time in milliseconds, or None."""
    return None if at is None else int(at.timestamp() * 1000)


def framework_name(job: Job) -> str:
    """The name of the job with its owner, `user~name`."""
    return f"{job.owner.username}~{openpai_name(job)}"


def openpai_name(job: Job) -> str:
    """The job's name in OpenPAI."""
    return str(job.openpai_name)  # type: ignore[attr-defined]  # the selectors annotate it


def state_of(job: Job) -> str:
    """The job's state in OpenPAI."""
    return states.state_of(job.phase, has_failed_pod=job.has_failed_pod)  # type: ignore[attr-defined]


def summary(job: Job) -> Shape:
    """A job in a list."""
    state = state_of(job)
    return {
        "debugId": str(job.uid),
        "name": openpai_name(job),
        "username": job.owner.username,
        "state": state,
        "subState": states.sub_state_of(job),
        "executionType": _execution_type(job),
        "tags": _tags(job),
        **_retries(job),
        "submissionTime": milliseconds(job.submitted_at),
        "createdTime": milliseconds(job.submitted_at),
        "launchedTime": milliseconds(job.started_at),
        "completedTime": milliseconds(job.finished_at),
        "appExitCode": {"SUCCEEDED": 0, "STOPPED": states.USER_STOP, "FAILED": -1}.get(state),
        "virtualCluster": job.queue.name,
        "jobPriority": priority_class(job.priority),
        **_totals(job),
    }


def _execution_type(job: Job) -> str:
    return "STOP" if JobPhase(job.phase) in (JobPhase.ABORTING, JobPhase.ABORTED) else "START"


def _tags(job: Job) -> list[str]:
    return list(job.jobconfig.tags) if hasattr(job, "jobconfig") else []


def _retries(job: Job) -> Shape:
    return {
        "retries": job.retry_count,
        "retryDetails": {"user": job.retry_count, "platform": 0, "resource": 0},
        "retryDelayTime": None,
    }


def _totals(job: Job) -> Shape:
    """Total GPUs, tasks and task roles. Reads the spec unparsed, because a list can have thousands of jobs."""
    tasks = job.spec["tasks"]
    devices = [parse_quantity(DEVICE, task.get("resources", {}).get(DEVICE, "0")) / 1000 for task in tasks]
    return {
        "totalGpuNumber": int(sum(n * task.get("replicas", 1) for n, task in zip(devices, tasks, strict=True))),
        "totalTaskNumber": job.replicas,
        "totalTaskRoleNumber": len(tasks),
    }


class AttemptHistory:
    """A job with all its pods. An attempt in OpenPAI is the set of pods of one version of the job."""

    def __init__(self, job: Job) -> None:
        self.job, self.spec = job, spec_of(job)
        options = load_frameworks()["openpai"].read(self.spec.plugins.get("openpai", ()))[0]
        self.roles: Mapping[str, TaskRole] = roles_of(self.spec.tasks, options)
        self._pods: defaultdict[int, list[Pod]] = defaultdict(list)
        for pod in selectors.pods(job):
            self._pods[pod.version].append(pod)

    @property
    def last(self) -> int:
        """The number of the last attempt, from 0."""
        return self.job.version - 1

    def pods(self, number: int) -> list[Pod]:
        """All pods of an attempt."""
        return self._pods[number + 1]

    def pods_of(self, number: int, task: TaskSpec, index: int) -> list[Pod]:
        """All pods of one replica in an attempt, oldest first."""
        return [pod for pod in self.pods(number) if (pod.task, pod.index) == (task.name, index)]

    def task_called(self, role: str) -> TaskSpec | None:
        """The task with this OpenPAI role name, or None."""
        return next((task for task in self.spec.tasks if self.roles[task.name].name == role), None)

    def state(self, number: int) -> str:
        """The state of an attempt. An earlier attempt is FAILED if one of its pods failed, otherwise STOPPED."""
        if number == self.last:
            return state_of(self.job)
        return "FAILED" if states.first_failure(self.pods(number)) else "STOPPED"

    def tasks(self, number: int) -> Shape:
        """All tasks of an attempt, by role."""
        by_replica: defaultdict[tuple[str, int], list[Pod]] = defaultdict(list)
        for pod in self.pods(number):
            by_replica[pod.task, pod.index].append(pod)
        return {
            self.roles[task.name].name: {
                "taskRoleStatus": {"name": self.roles[task.name].name},
                "taskStatuses": [
                    self._task(number, task, index, by_replica[task.name, index]) for index in range(task.replicas)
                ],
            }
            for task in self.spec.tasks
        }

    def _task(self, number: int, task: TaskSpec, index: int, pods: Sequence[Pod]) -> Shape:
        last = pods[-1] if pods else None
        return {
            **self.task_head(task, index, pods),
            **self.pod(number, task, index, last, max(len(pods) - 1, 0)),
        }

    def task_head(self, task: TaskSpec, index: int, pods: Sequence[Pod]) -> Shape:
        """The fields of a replica over all its attempts."""
        first, last = (pods[0], pods[-1]) if pods else (None, None)
        return {
            "taskIndex": index,
            "taskUid": f"{self.job.uid}-{task.name}-{index}",
            "taskState": states.pod_state(last),
            "retries": max(len(pods) - 1, 0),
            "accountableRetries": max(len(pods) - 1, 0),
            "createdTime": milliseconds(first.created_at if first else None),
            "launchedTime": milliseconds(first.started_at if first else None),
            "completedTime": milliseconds(last.finished_at if last else None),
        }

    def pod(self, number: int, task: TaskSpec, index: int, pod: Pod | None, attempt: int) -> Shape:
        """One attempt of a replica; empty fields if `pod` is None."""
        state, role = states.pod_state(pod), self.roles[task.name]
        ports = ports_of(role, pod.address) if pod else {}
        return {
            "attemptId": attempt if pod else None,
            "attemptState": state,
            "currentAttemptCreatedTime": milliseconds(pod.created_at if pod else None),
            "currentAttemptLaunchedTime": milliseconds(pod.started_at if pod else None),
            "currentAttemptCompletedTime": milliseconds(pod.finished_at if pod else None),
            "containerId": f"{self.job.uid}-{task.name}-{index}-{pod.attempt}" if pod else None,
            "containerIp": pod.address if pod else None,
            "containerNodeName": (pod.node or None) if pod else None,
            "containerPorts": {label: ",".join(map(str, numbers)) for label, numbers in ports.items()},
            "containerGpus": None,
            "containerLog": self.log_address(number, task, index, attempt) if pod else None,
            "containerExitCode": states.exit_code(state, [pod] if pod else []),
            "containerExitSpec": None,
            "containerExitDiagnostics": (pod.message or None) if pod else None,
        }

    def log_address(self, number: int, task: TaskSpec, index: int, attempt: int) -> str:
        """The URL path of the logs of an attempt of a replica."""
        place = f"attempts/{number}/taskRoles/{self.roles[task.name].name}/taskIndex/{index}/attempts/{attempt}/logs"
        return f"{ROOT}/{framework_name(self.job)}/{place}"

    def end(self, number: int) -> Shape:
        """The exit code and message of an attempt, and the replica that failed first; null values before the end."""
        state, pods = self.state(number), self.pods(number)
        guilty = states.first_failure(pods) if state == "FAILED" else None
        code = states.exit_code(state, pods)
        message = self.job.message if number == self.last else (guilty.message if guilty else "")
        return {
            "appExitCode": code,
            "appExitSpec": None,
            "appExitDiagnostics": (message or None) if code is not None else None,
            "appExitMessages": None,
            "appExitTriggerMessage": (message or None) if code is not None else None,
            "appExitTriggerTaskRoleName": self.roles[guilty.task].name if guilty else None,
            "appExitTriggerTaskIndex": guilty.index if guilty else None,
            "appExitType": {"SUCCEEDED": "Succeeded", "STOPPED": "Permanent", "FAILED": "Unknown"}.get(state),
        }

    def times(self, number: int) -> tuple[int | None, int | None, int | None]:
        """The times when an attempt was created, started and completed, in milliseconds; None: not yet."""
        pods = self.pods(number)
        started = [pod.started_at for pod in pods if pod.started_at]
        ended = [pod.finished_at for pod in pods if pod.finished_at]
        is_over = self.state(number) in ("SUCCEEDED", "STOPPED", "FAILED") and ended
        created = min((pod.created_at for pod in pods), default=self.job.submitted_at)
        launched = min(started) if started else None
        return milliseconds(created), milliseconds(launched), milliseconds(max(ended)) if is_over else None

    def detail(self, number: int) -> Shape:
        """The job with one of its attempts, as in the response for one job."""
        job, whole = self.job, summary(self.job)
        created, launched, completed = self.times(number)
        status = {
            **{name: whole[name] for name in _SHARED},
            "attemptId": number,
            "attemptState": self.state(number),
            "appId": str(job.uid),
            "appProgress": int(job.is_final or number < self.last),
            "appTrackingUrl": "",
            "appCreatedTime": created,
            "appLaunchedTime": launched,
            "appCompletedTime": completed,
            **self.end(number),
        }
        head = {name: whole[name] for name in ("debugId", "name", "tags", "jobPriority")}
        return {**head, "jobStatus": status, "taskRoles": self.tasks(number)}

    def history(self, number: int) -> Shape:
        """One attempt, as in the list of attempts."""
        created, _, completed = self.times(number)
        end = self.end(number)
        return {
            "jobName": openpai_name(self.job),
            "frameworkName": framework_name(self.job),
            "uid": str(self.job.uid),
            "userName": self.job.owner.username,
            "state": self.state(number),
            "originState": states.sub_state_of(self.job) if number == self.last else "Completed",
            "attemptIndex": number,
            "jobStartedTime": milliseconds(self.job.submitted_at),
            "attemptStartedTime": created,
            "attemptCompletedTime": completed,
            "exitCode": end["appExitCode"],
            "exitPhrase": None,
            "exitType": end["appExitType"],
            "exitDiagnostics": None,
            **{name: value for name, value in end.items() if name not in ("appExitCode", "appExitType")},
            "jobPriority": priority_class(self.job.priority),
            **_totals(self.job),
            "taskRoles": self.tasks(number),
            "isLatest": number == self.last,
        }
