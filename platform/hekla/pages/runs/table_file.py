"""The table of runs as a CSV file."""

from collections.abc import Sequence

from hekla.apps.job_metrics.ranking import Run
from hekla.lib import clock
from hekla.pages.frame.downloads import cell, csv_text
from hekla.pages.runs.table import RunTable, run_seconds

_HEAD = ("number", "job", "uid", "attempt", "phase", "reason", "submitted_at", "started_at", "finished_at", "seconds")


def table_text(table: RunTable) -> str:
    """A line for each job: its state, all parameters, and the last, lowest and highest value of the compared metrics.

    Times are in UTC. Columns of parameters begin with `parameter.`, those of metrics with `metric.`.
    """
    names = list(dict.fromkeys(name for run in table.runs for name in run.parameters))
    head = [
        *_HEAD,
        "best",
        *(cell(f"parameter.{name}") for name in names),
        *(f"metric.{name}.{which}" for name in table.metrics for which in ("last", "min", "max")),
    ]
    return csv_text([head, *(_row(run, table, names) for run in table.found)])


def _row(run: Run, table: RunTable, names: Sequence[str]) -> list[str]:
    job = run.job
    seconds = run_seconds(run, clock.now())
    values = [run.value(name, which) for name in table.metrics for which in ("last", "min", "max")]
    return [
        str(run.number),
        cell(job.name),
        str(job.uid),
        str(run.attempt),
        cell(job.phase),
        cell(job.reason),
        cell(job.submitted_at),
        cell(job.started_at),
        cell(job.finished_at),
        "" if seconds is None else str(round(seconds)),
        "yes" if run is table.best else "",
        *(cell(run.parameters.get(name, "")) for name in names),
        *("" if value is None else repr(value) for value in values),
    ]
