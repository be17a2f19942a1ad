"""The template context of job pages, shared by the full page and its live parts."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import urlencode

from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.job_history import (
    cluster_notices,
    explanations,
    failures,
    history,
    labels,
    pod_pages,
    prospects,
    receipts,
    ribbon,
)
from hekla.apps.job_history.failures import Explanation
from hekla.apps.jobs import selectors
from hekla.apps.jobs.facts import all_pod_facts, is_wanted, job_facts, read_specs, spec_of
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.sentences import together
from hekla.apps.tenancy.selectors import Rights
from hekla.apps.usage import selectors as usage
from hekla.domain.lifecycle import TRANSITIONS, delegated, stage_of
from hekla.domain.phases import JobPhase, PodPhase
from hekla.domain.policies import LifecycleAction
from hekla.lib import clock
from hekla.pages.frame import html
from hekla.pages.jobs import event_groups, file_rows, frozen_views, headline, merged_logs, origins, port_links, tabs

_OFFERED = (LifecycleAction.ABORT_JOB, LifecycleAction.RESUME_JOB, LifecycleAction.RESTART_JOB)
_BUSY = (PodPhase.RUNNING.value, PodPhase.SUCCEEDED.value)
_MOST_EVENTS = 200
_RECENT_EVENTS, _MOST_RECENT = 60, 6
"""Events read for the overview, and lines there."""
_MAX_DIGITS = 19  # a larger number does not fit into the column
_MOST_FAILURES = 3
_MAX_PODS = 100
PAGE = 50


@dataclass(frozen=True, slots=True)
class TaskStrip:
    """A task's pods for the gang strip. `note`: the tasks that it waits for, if any."""

    name: str
    summary: str
    pods: Sequence[dict[str, Any]]
    note: str = ""


@dataclass(frozen=True, slots=True)
class FailedPod:
    """A failed pod, the explanation, and the number of other pods that failed in the same way."""

    pod: Pod
    why: Explanation
    others: int


@dataclass(frozen=True, slots=True)
class JobRights:
    """Whether a person may act on a job, and submit jobs to its tenant."""

    act: bool
    submit: bool

    @classmethod
    def of(cls, user: User, job: Job, rights: Rights) -> "JobRights":
        """By the person's roles, without further queries."""
        may_submit = job.tenant_id in rights.where(Permission.SUBMIT_JOBS)
        return cls(selectors.action_predicate(user, rights)(job), may_submit)


def detail(job: Job, params: Mapping[str, str], may: JobRights, *, tab: str = "") -> dict[str, Any]:
    """What one tab of the job's page shows. `tab`: as in `tabs.chosen` if empty, which also says what `params` are."""
    tab = tab or tabs.chosen(params)
    pods = selectors.pods_of([job.pk])
    last = {(pod.task, pod.index): pod for pod in pods}.values()
    current = [pod for pod in last if not pod.is_final or is_wanted(job, pod)]
    actions, withheld = _possible(job, offered(job)) if may.act and job.deleted_at is None else ([], "")
    return {
        "job": job,
        "tab": tab,
        "tabs": tabs.links(job, tab),
        "progress": headline.progress(job, current),
        "pod_count": len(current),
        "earlier": len(pods) - len(current),
        "actions": actions,
        "withheld": withheld,
        "may_retry": may.submit and may.act and job.is_final and not job.is_external,
        "may_delete": may.act and job.is_final and job.deleted_at is None,
        "may_upload": may.act and job.deleted_at is None,
        "deletion": deletion(job),
        "port_links": port_links.of(job),
        "has_terminals": may.act and job.deleted_at is None and not job.is_external and not job.cluster.is_simulated,
        "running_pod": next((pod for pod in current if pod.phase == PodPhase.RUNNING), None),
        **origins.context(job),
        **frozen_views.context(job, may_act=may.act),
        "attempts": pods,
        "live_query": urlencode({"tab": tab}),
        **_OF_TAB[tab](job, pods, current, params),
    }


def _overview(job: Job, pods: Sequence[Pod], current: Sequence[Pod], _params: Mapping[str, str]) -> dict[str, Any]:
    course = selectors.course(job)
    lost, gained = _receipts(job, pods)
    newest = selectors.newest_events(job, _RECENT_EVENTS)
    oldest = newest[-1].pk if newest else 0
    return {
        "strips": strips(job, current),
        "tail": None if job.phase == JobPhase.FAILED else _log([], [pod for pod in current if pod.started_at], ""),
        "receipts": sorted([*lost, *gained], key=lambda receipt: -receipt.number)[: receipts.MOST],
        "queue_position": receipts.queue_position(job, lost),
        "timeline": event_groups.grouped(_lines(newest, [one for one in gained if one.number > oldest]))[:_MOST_RECENT],
        "failures": _failures(job, current),
        "notices": cluster_notices.of_job(job),
        "pending_reasons": explanations.sentences(job),
        "course": course,
        "placed": prospects.of_job(job, selectors.placement(job)),
        "ribbon": ribbon.of(job, course, now=clock.now()),
    }


def _log_tab(_job: Job, pods: Sequence[Pod], current: Sequence[Pod], params: Mapping[str, str]) -> dict[str, Any]:
    """`log` in `params`: the pod whose log is selected; else, or “all”: the merged logs (`merged_logs`)."""
    wanted = params.get("log", "")
    all_logs = merged_logs.of(current, params) if wanted in ("", "all") else None
    log = {} if all_logs else {"log": wanted}
    query = urlencode({name: value for name, value in (log | {"tab": tabs.LOG}).items() if value})
    return {
        "pods": current[:_MAX_PODS],
        "log": _log(pods, current, wanted),
        "all_logs": all_logs,
        "live_query": "&".join(filter(None, [all_logs.query if all_logs else "", query])),
    }


def _pods_tab(job: Job, pods: Sequence[Pod], _current: Sequence[Pod], params: Mapping[str, str]) -> dict[str, Any]:
    """The pods of one page, as `pod_pages` selects them by `params`."""
    chosen, last = pod_pages.choose(pod_pages.states_of(pods), params), {(pod.task, pod.index): pod for pod in pods}
    query = {"tab": tabs.PODS, **pod_pages.query_of(params)}
    return {
        "pods": [last[ref] for ref in chosen.refs],
        "chosen": chosen,
        "is_cut": params.get("since") == "start",
        "course": selectors.course(job),
        "live_query": urlencode(query),
        "page_query": urlencode({name: value for name, value in query.items() if name != "pods"}),
    }


def _events_tab(job: Job, pods: Sequence[Pod], _current: Sequence[Pod], params: Mapping[str, str]) -> dict[str, Any]:
    """`events` in `params`: a number, for the page of events before that one; else the newest."""
    before = _number(params.get("events", ""))
    newest = (
        list(selectors.history(job).filter(pk__lt=before).reverse()[:_MOST_EVENTS])
        if before
        else selectors.newest_events(job, _MOST_EVENTS)
    )
    oldest = newest[-1].pk if len(newest) == _MOST_EVENTS else 0
    _lost, gained = _receipts(job, pods)
    gained = [one for one in gained if one.number > oldest and (not before or one.number < before)]
    return {
        "timeline": event_groups.grouped(_lines(newest, gained)),
        "older_events": str(oldest or ""),
        "is_older": bool(before),
        "live_query": urlencode({"tab": tabs.EVENTS, **({"events": before} if before else {})}),
    }


def _files_tab(job: Job, pods: Sequence[Pod], current: Sequence[Pod], params: Mapping[str, str]) -> dict[str, Any]:
    """`only` in `params`: `live`, for a rendering without files: no live part has some, so none are listed."""
    if params.get("only") == "live":
        return {}
    chosen = next((pod for pod in pods if str(pod.pk) == params.get("pod")), None) or _log(pods, current, "")
    has_limit = job.tenant.files_gib is not None
    use = {"folder": usage.folder_of(job), "found": usage.files_of(job.tenant) if has_limit else None}
    return {"pods": current[:_MAX_PODS], **use, **_listing(chosen, params)}


def _listing(pod: Pod | None, params: Mapping[str, str]) -> dict[str, Any]:
    return file_rows.listing(pod, params.get("path", ""), params.get("find", "").strip()) if pod else {}


def _lines(events: list[LoggedEvent], gained: Iterable[receipts.Receipt]) -> list[history.TimelineEntry]:
    """The events and the evictions for this job, newest first."""
    return sorted([*history.lines(events), *history.gains(gained)], key=lambda line: -line.number)


def _receipts(job: Job, pods: Sequence[Pod]) -> tuple[list[receipts.Receipt], list[receipts.Receipt]]:
    """The evictions of the job's pods, and those of other pods for this job."""
    return receipts.made_room_for(job) if any(pod.evicted for pod in pods) else [], receipts.gained(job)


_OF_TAB: Mapping[str, Callable[[Job, Sequence[Pod], Sequence[Pod], Mapping[str, str]], dict[str, Any]]] = {
    tabs.OVERVIEW: _overview,
    tabs.LOG: _log_tab,
    tabs.PODS: _pods_tab,
    tabs.RESULTS: lambda *_arguments: {},
    tabs.FILES: _files_tab,
    tabs.EVENTS: _events_tab,
    tabs.SETTINGS: lambda *_arguments: {},
}


def _number(text: str) -> int:
    """The number of an event; 0 if the text is none."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < _MAX_DIGITS else 0


def deletion(job: Job) -> dict[str, Any]:
    """The confirmation question before deletion. `is_final`: something is lost for good."""
    keeps_no_logs, has_files = job.tenant.log_days == 0, bool(job.started_at) and not job.cluster.is_simulated
    lost = [labels.files_go(job.replicas)] * has_files + [labels.logs_go()] * keeps_no_logs
    retained = labels.retention(job.tenant.log_days, job.tenant.history_days)
    return {"text": together([*lost, retained]), "is_final": bool(lost)}


def _failures(job: Job, current: Sequence[Pod]) -> list[FailedPod]:
    """Why the job failed: one pod for each combination of reason and exit code, those that ended first before the
    others.
    """
    if job.phase != JobPhase.FAILED:
        return []
    found: dict[tuple[str, int | None], list[Pod]] = {}
    for pod in sorted(current, key=lambda pod: (pod.finished_at is None, pod.finished_at, pod.pk)):
        if failures.explain(pod):
            found.setdefault((pod.reason, pod.exit_code), []).append(pod)
    alike = list(found.values())[:_MOST_FAILURES]
    return [FailedPod(pods[0], why, len(pods) - 1) for pods in alike if (why := failures.explain(pods[0]))]


def _log(pods: Sequence[Pod], current: Sequence[Pod], chosen: str) -> Pod | None:
    """The pod whose log is shown: the selected one, else the first failed, else the first started, else the first."""
    wanted = [pod for pod in pods if str(pod.pk) == chosen]
    failed = [pod for pod in current if pod.phase == PodPhase.FAILED]
    started = [pod for pod in current if pod.started_at]
    return next(iter([*wanted, *failed, *started, *current]), None)


def phases(counts: Mapping[str, int], chosen: Sequence[str]) -> list[dict[str, Any]]:
    """A filter chip for each phase that has jobs or is selected."""
    return [
        {"value": phase.value, "count": counted(counts.get(phase.value, 0)), "chosen": phase.value in chosen}
        for phase in JobPhase
        if phase.value in counts or phase.value in chosen
    ]


def counted(count: int) -> str:
    """The count, or the limit with a plus if there are more."""
    return str(count) if count <= selectors.MOST_COUNTED else f"{selectors.MOST_COUNTED}+"


def offered(job: Job) -> list[str]:
    """The actions that the job's phase supports and that would change something."""
    return [] if job.is_external else list(_offered_in(job.phase))


@cache
def _offered_in(text: str) -> tuple[str, ...]:
    """The same for a phase: rows of a list have few of them."""
    phase = JobPhase(text)
    look = TRANSITIONS.get((phase, LifecycleAction.SYNC_JOB))
    moves = {action: TRANSITIONS.get((phase, action)) for action in _OFFERED}
    return tuple(str(action) for action, move in moves.items() if move is not None and move is not look)


def _possible(job: Job, actions: list[str]) -> tuple[list[str], str]:
    """The actions that the job's controller accepts, and the first reason why it refuses another."""
    if not job.cluster.leads_jobs:
        return actions, ""
    refusals = {action: delegated.refusal(job_facts(job), LifecycleAction(action)) for action in actions}
    return [action for action in actions if not refusals[action]], next(filter(None, refusals.values()), "")


def strips(job: Job, current: Sequence[Pod]) -> list[TaskStrip]:
    """The gang strips: every replica of the job, including those without a pod."""
    phases = {(pod.task, pod.index): pod for pod in current}
    notes, place = _waiting_tasks(job, current), html.address("jobs:detail", job.uid)
    found = []
    for task in job.spec["tasks"]:
        name, replicas = task["name"], task.get("replicas", 1)
        pods = [_square(name, index, phases.get((name, index)), place) for index in range(replicas)]
        running = sum(pod["phase"] == PodPhase.RUNNING for pod in pods)
        done = sum(pod["phase"] == PodPhase.SUCCEEDED for pod in pods)
        found.append(TaskStrip(name, f"{running + done} / {replicas}", pods, notes.get(name, "")))
    return found


def _waiting_tasks(job: Job, current: Sequence[Pod]) -> dict[str, str]:
    """A note for each task that waits for other tasks."""
    if job.is_final:
        return {}
    waits = stage_of(job_facts(job), all_pod_facts(current)).waits
    return {name: labels.waits_for(spec_of(job).task(name), others) for name, others in waits.items()}


def _square(task: str, index: int, pod: Pod | None, place: str) -> dict[str, Any]:
    """A pod's square, rendered without helpers because a job may have a thousand of them."""
    phase, name = pod.phase if pod else PodPhase.PENDING.value, f"{task}-{index}"
    url = f"{place}pods/{pod.pk}/" if pod else ""
    return {"name": name, "phase": phase, "url": url, "title": f"{name}: {labels.phase(phase)}"}


def rows(jobs: Iterable[Job], may_act: Callable[[Job], bool] = lambda _job: False) -> list[dict[str, Any]]:
    """Rows of a list: each job with its pod counts, and the actions that the person may take."""
    jobs = list(jobs)
    counts, actions = selectors.pod_counts(jobs), _all_possible(jobs, may_act)
    words = {
        "AbortJob": (_("Abort"), "abort"),
        "ResumeJob": (_("Resume"), "play"),
        "RestartJob": (_("Restart"), "retry"),
    }
    return [
        {
            "job": job,
            "place": html.address("jobs:detail", job.uid),
            "counts": counts[job.pk],
            "busy": _busy(counts[job.pk]),
            "may_act": job.pk in actions,
            "actions": [(word, *words[word]) for word in actions.get(job.pk, ())],
        }
        for job in jobs
    ]


def _all_possible(jobs: Iterable[Job], may_act: Callable[[Job], bool]) -> dict[int, list[str]]:
    """The actions for each job that the person may act on. Their specs are read in one query."""
    wanted = [(job, offered(job)) for job in jobs if job.deleted_at is None and may_act(job)]
    read_specs(job for job, actions in wanted if actions and job.cluster.leads_jobs)
    return {job.pk: _possible(job, actions)[0] for job, actions in wanted}


def _busy(counts: dict[str, int]) -> int:
    return sum(counts.get(phase, 0) for phase in _BUSY)
