"""A Gantt chart of a job's pods: how long each waited and why, how long it started and ran, and how it ended.

A row is a replica with its attempts in sequence. A chart has the rows of one page (`pod_pages`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from django.utils.translation import gettext as _

from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.job_history import endings, labels, pod_pages, waits
from hekla.apps.job_history.waits import WaitInterval
from hekla.apps.jobs import selectors
from hekla.apps.jobs.models import Job, Pod
from hekla.domain.phases import PodPhase

ATTEMPTS = 12
"""The maximum number of attempts drawn per replica, the newest ones."""
_WHOLE = 1000.0
_LEAST_WIDTH = 1.5
_TICKS = 4
_ENDED = {PodPhase.SUCCEEDED: "done", PodPhase.FAILED: "failed", PodPhase.LOST: "lost"}
_JOB_STATES = {
    "running": "running", "completing": "running", "restarting": "starting", "aborting": "stopped",
    "terminating": "stopped",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class GanttBar:
    """A segment of a row, in thousandths of the whole time. `kind` sets its colour and height."""

    start: float
    width: float
    kind: str
    words: str


@dataclass(frozen=True, slots=True)
class GanttRow:
    """A replica, or the job itself. `words` say the same as the bars; `look` is the phase that sets its colour."""

    name: str
    pod_id: int | None
    look: str
    outcome: str
    attempts: int
    bars: Sequence[GanttBar]
    words: str


@dataclass(frozen=True, slots=True)
class Scale:
    """Converts times to thousandths of the time shown."""

    begin: datetime
    end: datetime

    @property
    def seconds(self) -> float:
        return max((self.end - self.begin).total_seconds(), 1.0)

    def bar(self, begin: datetime, end: datetime, kind: str, words: str) -> GanttBar | None:
        """The bar of this time, cut to the scale, or None if it lies outside."""
        left, right = max(begin, self.begin), min(end, self.end)
        if right < left or end < self.begin:
            return None
        start = (left - self.begin).total_seconds() / self.seconds * _WHOLE
        width = max((right - left).total_seconds() / self.seconds * _WHOLE, _LEAST_WIDTH)
        return GanttBar(round(min(start, _WHOLE - width), 1), round(width, 1), kind, words)

    def ticks(self) -> list[str]:
        """The labels of the axis, from start to end; a repeated label is left empty."""
        words = ["0", *(labels.duration(self.seconds * n / _TICKS) for n in range(1, _TICKS + 1))]
        return [word if word not in words[:place] else "" for place, word in enumerate(words)]


def chart(
    job: Job,
    params: Mapping[str, str],
    *,
    now: datetime,
    course: Sequence[LoggedEvent] | None = None,
    pods: Sequence[Pod] | None = None,
) -> dict[str, Any]:
    """The chart. `params`: those of `pod_pages.choose`; `since=start` leaves out the first wait.

    It reads the rows that it shows, and the phases of all replicas. `course` and `pods` (every attempt): pass them if
    already read.
    """
    chosen = pod_pages.choose(selectors.replica_states(job) if pods is None else pod_pages.states_of(pods), params)
    events = selectors.course(job) if course is None else course
    waited = waits.stretches(job, events)
    scale = _scale(job, params.get("since", ""), now)
    attempts_on_page = selectors.attempts(job, chosen.refs) if pods is None else _of(pods, set(chosen.refs))
    rows = [_replica(attempts, waited, scale) for attempts in _by_replica(attempts_on_page)]
    return {
        "rows": [_job_row(job, waits.stays(job, events), waited, scale), *rows],
        "ticks": scale.ticks(),
        "scale": scale,
        "causes": sorted({stretch.cause for stretch in waited if stretch.cause}),
        "chosen": chosen,
        "is_cut": params.get("since") == "start",
        "is_live": not job.is_final,
    }


def _of(pods: Iterable[Pod], refs: set[tuple[str, int]]) -> list[Pod]:
    return [pod for pod in pods if (pod.task, pod.index) in refs]


def _scale(job: Job, since: str, now: datetime) -> Scale:
    begin = job.started_at if since == "start" and job.started_at else job.submitted_at
    return Scale(begin, max(job.finished_at or now, begin + timedelta(seconds=1)))


def _by_replica(pods: Sequence[Pod]) -> Iterator[list[Pod]]:
    for _ref, attempts in groupby(pods, key=lambda pod: (pod.task, pod.index)):
        yield list(attempts)[-ATTEMPTS:]


# The job's own row


def _job_row(job: Job, stays: Sequence[waits.PhaseInterval], waited: Sequence[WaitInterval], scale: Scale) -> GanttRow:
    bars = [bar for stay in stays for bar in _stay(stay, waited, scale)]
    return GanttRow(job.name, None, job.phase, "", 0, bars, _("; ").join(dict.fromkeys(bar.words for bar in bars)))


def _stay(stay: waits.PhaseInterval, waited: Sequence[WaitInterval], scale: Scale) -> Iterator[GanttBar]:
    end = stay.end or scale.end
    if waits.is_at_rest(stay):
        yield from _waiting(stay.begin, end, waited, scale)
    elif stay.phase in _JOB_STATES:
        words = labels.phase(stay.phase) + _(": ") + labels.duration((end - stay.begin).total_seconds())
        if bar := scale.bar(stay.begin, end, _JOB_STATES[stay.phase], words):
            yield bar


def _waiting(begin: datetime, end: datetime, waited: Sequence[WaitInterval], scale: Scale) -> Iterator[GanttBar]:
    """The bars of a wait, coloured by its reasons."""
    for piece in waits.cut(begin, end, waited):
        piece_end = piece.end or end
        kind = f"waiting reason-{piece.cause}" if piece.cause else "waiting"
        words = _("waited %(long)s") % {"long": labels.duration((piece_end - piece.begin).total_seconds())}
        words = words + _(": ") + piece.sentence if piece.sentence else words
        if bar := scale.bar(piece.begin, piece_end, kind, words):
            yield bar


# Replicas


def _replica(attempts: Sequence[Pod], waited: Sequence[WaitInterval], scale: Scale) -> GanttRow:
    last = attempts[-1]
    bars = [bar for pod in attempts for bar in _attempt(pod, waited, scale)]
    words = _("; ").join(_describe_attempt(pod, scale.end) for pod in attempts)
    look = "terminated" if endings.was_stopped(last) else last.phase
    return GanttRow(str(last), last.pk, look, endings.outcome(last), last.attempt, bars, words)


def _attempt(pod: Pod, waited: Sequence[WaitInterval], scale: Scale) -> Iterator[GanttBar]:
    over = pod.finished_at or scale.end
    placed, began = pod.bound_at or over, pod.started_at or over
    yield from _waiting(pod.created_at, placed, waited, scale)
    pieces = []
    if pod.bound_at:
        pieces.append((placed, began, "starting", _("started in %s")))
    if pod.started_at:
        pieces.append((began, over, _ran(pod), _("ran for %s")))
    elif pod.is_final:
        pieces.append((over, over, _ran(pod), endings.outcome(pod).replace("%", "%%") + " (%s)"))
    for begin, end, kind, words in pieces:
        text = f"#{pod.attempt}: {words % labels.duration((end - begin).total_seconds())}"
        if bar := scale.bar(begin, end, kind, text):
            yield bar


def _ran(pod: Pod) -> str:
    """The colour of an attempt's run, by how it ended."""
    if not pod.is_final:
        return "running"
    return "stopped" if endings.was_stopped(pod) else _ENDED[PodPhase(pod.phase)]


def _describe_attempt(pod: Pod, now: datetime) -> str:
    """“attempt 2, waited 3 s, ran for 2 min 4 s, node-7, Failed · 1”."""
    over = pod.finished_at or now
    parts = [_("attempt %d") % pod.attempt]
    waited = ((pod.bound_at or over) - pod.created_at).total_seconds()
    parts.append(_("waited %(long)s") % {"long": labels.duration(waited)})
    if pod.started_at:
        parts.append(_("ran for %s") % labels.duration((over - pod.started_at).total_seconds()))
    parts += [pod.node, endings.outcome(pod)]
    return _(", ").join(filter(None, parts))
