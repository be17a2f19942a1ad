"""The result of an experiment for its page: figures side by side, sentences about what was assumed, and plots."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.template.defaultfilters import filesizeformat
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from hekla.apps.job_history import labels
from hekla.apps.policy_lab.models import LabTrace
from hekla.pages.frame import plots
from hekla.simulation.lab.differences import DifferenceCause
from hekla.simulation.lab.experiment import LabColumn
from hekla.simulation.lab.workload import RecordGap, WorkloadNote

Json = Mapping[str, Any]
COLUMNS = {
    LabColumn.RECORDED: gettext_lazy("What happened"),
    LabColumn.UNCHANGED: gettext_lazy("Simulated, unchanged"),
    LabColumn.CHANGED: gettext_lazy("Simulated, with the change"),
}
_DASHES = {LabColumn.RECORDED: "dot", LabColumn.UNCHANGED: "dash", LabColumn.CHANGED: "solid"}
_NAMED = 20
"""Queues of a trace that its page names."""
_BARS = 12
"""Queues of the bar chart: those with the most jobs."""


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """A figure: its name, and its value in each column."""

    label: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ComparedGroup:
    """A queue or a tenant: its jobs, and for each column its waits, used hours and evicted pods."""

    name: str
    jobs: int
    values: tuple[tuple[str, str, str, str], ...]


@dataclass(frozen=True, slots=True)
class LabPlot:
    """A plot of an experiment."""

    title: str
    json: SafeString


def heads(result: Json) -> list[str]:
    """The headings of the columns."""
    return [str(COLUMNS[name]) for name, _one in _columns(result)]


def _columns(result: Json) -> list[tuple[LabColumn, Json]]:
    """The columns in their order: the database has another."""
    return [(name, result["columns"][name]) for name in LabColumn if name in result["columns"]]


def rows(result: Json) -> list[ComparisonRow]:
    """The figures of the whole cluster."""
    columns = [one for _name, one in _columns(result)]
    hours = _("GPU-hours") if result["unit"] == "gpu" else _("CPU-hours")
    use = _("Use of GPUs") if result["unit"] == "gpu" else _("Use of CPUs")

    def row(label: str, value: Any) -> ComparisonRow:  # noqa: ANN401
        return ComparisonRow(label, tuple(value(one) for one in columns))

    return [
        row(_("Jobs"), lambda one: f"{one['total']['jobs']:,}"),
        row(_("Finished jobs"), lambda one: f"{one['total']['finished']:,}"),
        row(_("Wait, median"), lambda one: _wait(one["total"], "wait_p50")),
        row(_("Wait, 90 % of the jobs"), lambda one: _wait(one["total"], "wait_p90")),
        row(use, lambda one: f"{one['use']:.1%}"),
        row(hours, lambda one: f"{one['total']['used_hours']:,.1f}"),
        row(_("Evicted pods"), lambda one: f"{one['total']['evictions']:,}"),
        row(_("Slowdown, mean"), lambda one: _number(one["total"]["slowdown"])),
        row(_("Fairness between tenants"), lambda one: _number(one["fairness"])),
        row(_("From the first submission to the last end"), lambda one: labels.duration(one["makespan"] * 3600)),
    ]


def groups(result: Json, part: str) -> list[ComparedGroup]:
    """The queues or the tenants (`part`), those with the most jobs first."""
    columns = [one for _name, one in _columns(result)]
    sizes = {name: one["jobs"] for column in columns for name, one in column[part].items()}
    names = sorted(sizes, key=lambda name: (-sizes[name], name))
    return [
        ComparedGroup(name, sizes[name], tuple(_group(column[part].get(name)) for column in columns)) for name in names
    ]


def _group(found: Json | None) -> tuple[str, str, str, str]:
    if found is None:
        return "–", "–", "–", "–"
    return (
        _wait(found, "wait_p50"),
        _wait(found, "wait_p90"),
        f"{found['used_hours']:,.1f}",
        f"{found['evictions']:,}",
    )


def _wait(found: Json, name: str) -> str:
    """A wait in words; `≥` where a job still waits."""
    seconds = found[name]
    if seconds is None:
        return "–"
    return f"{'≥ ' if found['is_capped'] and name == 'wait_p90' else ''}{labels.duration(seconds)}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


# What it is worth.


def trust(result: Json) -> list[str]:
    """How the unchanged run differs from what happened: the error to expect of the other one."""
    found = result["trust"]
    if not found:
        return [_("Nothing was recorded of these jobs, so the error of the simulation is not known.")]
    sentences = []
    if every := found["binds"]:
        equal = found["equal_binds"]
        sentence = _("The unchanged simulation put %(equal)d of %(every)d pods on the recorded node (%(part).1f %%).")
        sentences.append(sentence % {"equal": equal, "every": every, "part": equal / every * 100})
    if found["error_p50"] is not None:
        values = {"median": labels.duration(found["error_p50"]), "most": labels.duration(found["error_p90"])}
        sentence = _("Its waits differ from the recorded ones by up to %(median)s for half of the jobs.")
        sentences += [sentence % values, _("For 90 %% of the jobs they differ by up to %(most)s.") % values]
    return sentences


def predictions(result: Json) -> list[str]:
    """How many predicted start times held, in sentences; none in results of versions that did not count them."""
    found = result.get("forecasts")
    if not found:
        return []
    cases, unknown = found["cases"], found["unknown"]
    if not cases and not unknown:
        return [_("No start time was predicted: no job of the period waited long enough.")]
    sentences = []
    if cases:
        sentence = _("%(held)d of %(cases)d jobs that waited started within their predicted range (%(part).1f %%).")
        sentences.append(sentence % {"held": found["held"], "cases": cases, "part": found["held"] / cases * 100})
        sentence = _(
            "Earlier than predicted: %(early)d. Later: %(late)d. A range is made to hold for 90 %% of the jobs."
        )
        sentences.append(sentence % {"early": found["early"], "late": found["late"]})
    if unknown:
        sentence = ngettext(
            "%(n)d job waited without a prediction.", "%(n)d jobs waited without a prediction.", unknown
        )
        sentences.append(sentence % {"n": unknown})
    return sentences


@dataclass(frozen=True, slots=True)
class DifferingJob:
    """A job that the unchanged simulation bound elsewhere, and why."""

    name: str
    tenant: str
    at: datetime
    recorded: str
    simulated: str
    why: str


def differing(result: Json) -> list[DifferingJob]:
    """The first jobs that differ; none in results of versions that did not list them."""
    found = (result["trust"] or {}).get("differing", {}).get("listed", ())
    return [
        DifferingJob(
            one["name"],
            one["tenant"],
            datetime.fromtimestamp(one["at"] / 1000, UTC),
            one["recorded"],
            one["simulated"] or "–",
            " ".join(str(_CAUSES[cause]) for cause in one["causes"] if cause in _CAUSES),
        )
        for one in found
    ]


def differing_count(result: Json) -> int:
    """How many jobs differ."""
    return int((result["trust"] or {}).get("differing", {}).get("jobs", 0))


_CAUSES: Mapping[str, Any] = {
    RecordGap.RESIZED: gettext_lazy("Its size was changed: only the last one is recorded."),
    RecordGap.RESTARTED: gettext_lazy("It was restarted as a whole."),
    RecordGap.STAGES: gettext_lazy("Some of its tasks wait for others."),
    RecordGap.CLAIMS: gettext_lazy("It uses devices or volumes, which are not simulated."),
    RecordGap.EXTERNAL: gettext_lazy("Its pods are external."),
    RecordGap.BEFORE: gettext_lazy("It was submitted before the period."),
    DifferenceCause.AFTER: gettext_lazy("Other resources were free, because a job before it differs."),
    DifferenceCause.NODES: gettext_lazy("The history of nodes is not recorded."),
    DifferenceCause.MOMENT: gettext_lazy("It was decided at the same moment as something else."),
}


def notes(result: Json) -> list[str]:
    """What was assumed, in sentences."""
    found = {WorkloadNote(name): count for name, count in result["notes"].items()}
    step = _("Simulated time advances in steps of %s. Evicted pods lose what they did.")
    exact = _("Nothing is drawn at random: the same experiment always gives the same figures.")
    return [*_plain_notes(found), *_counted_notes(found), step % labels.duration(result["step"] / 1000), exact]


def _plain_notes(found: Mapping[WorkloadNote, int]) -> Iterator[str]:
    sentences = {
        WorkloadNote.SIMULATED: _("The cluster is simulated: its jobs did no work."),
        WorkloadNote.NODES_NOW: _("Nodes are those of today: too many changes were recorded."),
        WorkloadNote.NODES_FROM_EVENTS: _("Nodes come and go as recorded. Their labels are those of today."),
        WorkloadNote.NO_EXTENDERS: _("Extenders of the policy are not called."),
        WorkloadNote.NODES_FROM_FILE: _("The jobs of the trace run on the present nodes of the cluster."),
        WorkloadNote.EQUAL_PODS: _("The pods of a job of the trace are equal, and all start together."),
    }
    yield from (sentence for note, sentence in sentences.items() if note in found)


def _counted_notes(found: Mapping[WorkloadNote, int]) -> Iterator[str]:
    if n := found.get(WorkloadNote.NEVER_RAN, 0):
        sentence = ngettext(
            "%(n)d job never ran. Its run time is the median of its tenant in the queue.",
            "%(n)d jobs never ran. Their run times are the median of their tenant in the queue.",
            n,
        )
        yield sentence % {"n": n}
    if n := found.get(WorkloadNote.NO_CLAIMS, 0):
        sentence = ngettext(
            "%(n)d job runs without its claims to devices and volumes.",
            "%(n)d jobs run without their claims to devices and volumes.",
            n,
        )
        yield sentence % {"n": n}
    yield from _trace_sentences(found)


def _trace_sentences(found: Mapping[WorkloadNote, int]) -> Iterator[str]:
    """What reading a trace assumed or left out."""
    if WorkloadNote.NO_ZONE in found:
        yield _("Times without a zone are read as UTC.")
    if n := found.get(WorkloadNote.TOO_LARGE, 0):
        sentence = ngettext(
            "%(n)d job of the trace fits on no node, and is left out.",
            "%(n)d jobs of the trace fit on no node, and are left out.",
            n,
        )
        yield sentence % {"n": n}
    if n := found.get(WorkloadNote.UNREADABLE, 0):
        sentence = ngettext(
            "%(n)d line of the trace could not be read.", "%(n)d lines of the trace could not be read.", n
        )
        yield sentence % {"n": n}
    if n := found.get(WorkloadNote.ENDED_BEFORE_START, 0):
        sentence = ngettext(
            "%(n)d attempt ended before it began, and is left out.",
            "%(n)d attempts ended before they began, and are left out.",
            n,
        )
        yield sentence % {"n": n}
    if n := found.get(WorkloadNote.NO_END, 0):
        sentence = ngettext(
            "%(n)d attempt has no end: it runs until the end of the simulation.",
            "%(n)d attempts have no end: they run until the end of the simulation.",
            n,
        )
        yield sentence % {"n": n}


def trace_notes(row: LabTrace) -> list[str]:
    """What reading this trace assumed or left out, in sentences."""
    found = list(_trace_sentences({WorkloadNote(name): count for name, count in row.notes.items()}))
    if row.first_unreadable:
        found.append(_("The first line that could not be read is line %d.") % row.first_unreadable)
    return found


def trace_facts(row: LabTrace) -> list[tuple[str, str]]:
    """What is in this trace, as labels and values."""
    return [
        (_("Format"), row.format),
        (_("Size"), filesizeformat(row.size)),
        (_("Jobs"), f"{row.jobs:,}"),
        (_("Pods"), f"{row.pods:,}"),
        (_("Queues"), ", ".join(row.queues[:_NAMED]) + (" …" if len(row.queues) > _NAMED else "")),
    ]


# Plots.


def pictures(result: Json) -> list[LabPlot]:
    """Use and waiting jobs over time, and the waits of the queues."""
    use = _("Use of GPUs (%)") if result["unit"] == "gpu" else _("Use of CPUs (%)")
    found = [_lines(result, "use", use, 100), _lines(result, "waiting", _("Waiting jobs"), 1)]
    return [*found, _bars(result)]


def _lines(result: Json, name: str, title: str, scale: float) -> LabPlot:
    start, end = result["period"]
    traces = []
    for column, one in _columns(result):
        values = [round(value * scale, 2) for value in one["points"][name]]
        step = (end - start) / max(1, len(values))
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": str(COLUMNS[column]),
                "x": [_instant(start + step * (at + 0.5)) for at in range(len(values))],
                "y": values,
                "line": {"dash": _DASHES[column]},
            }
        )
    return LabPlot(title, plots.json_of(traces, xaxis={"type": "date"}, yaxis={"rangemode": "tozero"}, legend=_LEGEND))


def _bars(result: Json) -> LabPlot:
    names = [one.name for one in groups(result, "queues")][:_BARS]
    traces = [
        {
            "type": "bar",
            "name": str(COLUMNS[column]),
            "x": names,
            "y": [_hours(one["queues"].get(name)) for name in names],
        }
        for column, one in _columns(result)
    ]
    title = _("Wait of 90 % of the jobs by queue (hours)")
    return LabPlot(title, plots.json_of(traces, barmode="group", legend=_LEGEND, xaxis={"type": "category"}))


_LEGEND = {"orientation": "h", "y": -0.4}  # below ticks of two lines


def _hours(found: Json | None) -> float | None:
    return None if found is None or found["wait_p90"] is None else round(found["wait_p90"] / 3600, 3)


def _instant(milliseconds: float) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# Capacity planning.


def plan(result: Json) -> str:
    """How many more nodes the goal takes; empty without a goal."""
    found = result.get("plan")
    if not found:
        return ""
    values = {"n": found["count"], "name": found["like"], "most": found["most"]}
    values["wait"] = labels.duration(found["wait_p90"])
    if found["count"] is None:
        return _("Even with %(most)d more nodes like %(name)s, 90 %% of the jobs wait longer than %(wait)s.") % values
    if not found["count"]:
        return _("No more nodes are needed: 90 %% of the jobs wait at most %(wait)s.") % values
    sentence = ngettext(
        "With %(n)d more node like %(name)s, 90 %% of the jobs wait at most %(wait)s.",
        "With %(n)d more nodes like %(name)s, 90 %% of the jobs wait at most %(wait)s.",
        found["count"],
    )
    return sentence % values


def trials(result: Json) -> list[ComparisonRow]:
    """The runs of the capacity plan: more nodes, and the wait of 90 % of the jobs."""
    found = (result.get("plan") or {}).get("trials", ())
    every = sorted(found, key=lambda one: int(one["count"]))
    return [ComparisonRow(f"{one['count']:,}", (_wait(one, "wait_p90"),)) for one in every]


# What was changed.


def changes(change: Json) -> Sequence[str]:
    """The changes of queues and nodes, in sentences; that of the policy is shown as a difference."""
    found: list[str] = []
    for name, one in change.get("queues", {}).items():
        if "weight" in one:
            found.append(_("Weight of queue %(name)s: %(weight)d") % {"name": name, "weight": one["weight"]})
        for key, label in _AMOUNTS.items():
            if key in one:
                amounts = ", ".join(f"{kind} {text}" for kind, text in (one[key] or {}).items())
                found.append(f"{label % name}: {amounts or _('none')}")
    for one in change.get("nodes", ()):
        found.append(_("%(n)d more nodes like %(name)s") % {"n": one["count"], "name": one["like"]})
    if goal := change.get("goal"):
        values = {"n": goal["most"], "name": goal["like"], "wait": labels.duration(goal["wait_p90"])}
        sentence = _("As many more nodes like %(name)s, up to %(n)d, as let 90 %% of the jobs wait at most %(wait)s")
        found.append(sentence % values)
    if removed := change.get("remove_nodes"):
        found.append(_("Without the nodes %s") % ", ".join(removed[:20]))
    return found


_AMOUNTS = {
    "capability": gettext_lazy("Limit of queue %s"),
    "deserved": gettext_lazy("Deserved by queue %s"),
    "guarantee": gettext_lazy("Guaranteed to queue %s"),
}
