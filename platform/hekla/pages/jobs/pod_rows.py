"""The rows of a job's pods: see `jobs/_pods.html`, which has their heads."""

from collections.abc import Iterable
from functools import partial
from itertools import groupby

from django.utils.safestring import SafeString, mark_safe
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from markupsafe import escape as text

from hekla.apps.job_history import card_labels, endings
from hekla.apps.job_history.pod_pages import PodPage, TaskCount
from hekla.apps.jobs.models import Job, Pod
from hekla.domain.phases import PodPhase
from hekla.pages.frame import html

_LONGEST = 200


def pod_rows(job: Job, pods: Iterable[Pod], chosen: PodPage, has_terminals: bool = False) -> SafeString:
    """A row for each of these pods of the job, in a group for each task if it has several."""
    terminal = _terminal_link() if has_terminals else ""
    make = partial(_row, html.address("jobs:detail", job.uid), terminal, [text(label) for label in _labels()])
    groups = [(task, "".join(map(make, group))) for task, group in groupby(pods, key=lambda pod: pod.task)]
    if len(chosen.tasks) == 1:
        return mark_safe("".join(f"<tbody>{rows}</tbody>" for _task, rows in groups))
    return mark_safe("".join(f"<tbody>{_group(chosen.counts[task])}{rows}</tbody>" for task, rows in groups))


def _group(task: TaskCount) -> str:
    counts = " ".join(f"{html.phase(phase)} {count}" for phase, count in task.phases)
    return (
        f'<tr class="table-group"><th colspan="7" scope="rowgroup">{text(task.name)}'
        f'<span class="group-counts">{counts}</span></th></tr>'
    )


def _labels() -> list[str]:
    return [_("State"), _("Node"), _("Attempt"), _("Exit code"), _("Started"), _("Run time")]


def _terminal_link() -> str:
    """The links to a pod's terminal and tools, with `%s` for the address of its page."""
    terminal, tools = text(_("Terminal")), text(_("Tools"))
    return f' <a class="row-note" href="%sterminal/">{terminal}</a> <a class="row-note" href="%stools/">{tools}</a>'


def _row(place: str, terminal: str, labels: list[str], pod: Pod) -> str:
    phase, node, attempt, end, started, ran = labels
    own = f"{place}pods/{pod.pk}/"
    link = terminal % (own, own) if terminal and pod.phase == PodPhase.RUNNING else ""
    return (
        f'<tr id="pod-{pod.pk}"><th scope="row"><a href="{own}">{text(pod)}</a>{link}</th>'
        f'<td data-label="{phase}"><span>{html.phase(pod.phase)}{_note(pod)}</span></td>'
        f'<td data-label="{node}"><span>{text(pod.node or "–")}{_cards(pod)}{_cpus(pod)}</span></td>'
        f'<td class="number" data-label="{attempt}">{_attempt(pod)}</td>'
        f'<td data-label="{end}">{text(endings.exit_of(pod))}</td>'
        f'<td data-label="{started}">{html.moment(pod.started_at)}</td>'
        f'<td class="number" data-label="{ran}">{html.duration(pod.started_at, pod.finished_at)}</td></tr>'
    )


def _cards(pod: Pod) -> str:
    if not pod.cards:
        return ""
    names, details = text(card_labels.cards(pod.cards)), text(card_labels.details(pod.cards))
    return f'<span class="row-note" title="{details}">{names}</span>'


def _cpus(pod: Pod) -> str:
    return f'<span class="row-note">{text(_("Own CPUs"))} {text(pod.cpus)}</span>' if pod.cpus else ""


def _attempt(pod: Pod) -> str:
    """The number; on phones only those after the first."""
    return str(pod.attempt) if pod.attempt > 1 else f'<span class="nothing">{pod.attempt}</span>'


def _note(pod: Pod) -> str:
    """Why it is in its state; on phones only if no exit code says it."""
    if not pod.message:
        return ""
    message = Truncator(endings.detail(pod.reason, pod.message)).chars(_LONGEST)
    place = "" if pod.exit_code is None else " wide-only"
    return f'<span class="row-note{place}">{text(message)}</span>'
