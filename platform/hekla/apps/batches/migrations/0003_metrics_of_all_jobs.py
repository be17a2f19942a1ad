"""Copies the metrics that were read to `job_metrics`, which has those of all jobs."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

_STRETCHES, _AT_ONCE = 126, 500


def copy(apps: Apps, _editor: BaseDatabaseSchemaEditor) -> None:
    old, new = apps.get_model("batches", "MetricLog"), apps.get_model("job_metrics", "MetricLog")
    rows = (_row(new, log) for log in old.objects.select_related("member").iterator(chunk_size=_AT_ONCE))
    for chunk in _chunks(rows):
        new.objects.bulk_create(chunk)


def _chunks(rows: Iterator[Any]) -> Iterator[list[Any]]:
    while chunk := list(islice(rows, _AT_ONCE)):
        yield chunk


def _row(model: Any, log: Any) -> Any:  # noqa: ANN401  (historical models)
    points = {name: _points(figures, log.points[name]) for name, figures in log.summary.items()}
    summary = {name: _figures(figures, points[name]) for name, figures in log.summary.items()}
    facts = {name: getattr(log, name) for name in ("pod_id", "offset", "is_complete", "due_at")}
    return model(job_id=log.member.job_id, summary=summary, points=points, **facts)


def _points(figures: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """The curve as stretches of the same number of points, with the lowest and the highest of each."""
    pairs = list(zip(old["steps"], old["values"], strict=True))
    size = max(1, -(-len(pairs) // _STRETCHES))
    found = []
    for begin in range(0, len(pairs), size):
        group = pairs[begin : begin + size]
        low = min(range(len(group)), key=lambda place: group[place][1])
        high = max(range(len(group)), key=lambda place: group[place][1])
        found += [group[min(low, high)], group[max(low, high)]]
    found += [pairs[0], (old["last_step"], figures["last"])]
    steps, values = zip(*found, strict=True)
    return {
        "steps": list(steps),
        "values": list(values),
        "seconds": [None] * len(found),
        "every": old["every"] * size,
    }


def _figures(figures: Mapping[str, Any], points: Mapping[str, Any]) -> dict[str, Any]:
    """With the steps of the lowest and highest of the stored points: those of all values are not known."""
    steps, values = points["steps"], points["values"]
    at = {"min_step": steps[values.index(min(values))], "max_step": steps[values.index(max(values))]}
    return {**figures, "last_step": steps[-1], **at}


class Migration(migrations.Migration):
    dependencies = [("batches", "0002_metrics_and_end"), ("job_metrics", "0001_initial")]

    operations = [migrations.RunPython(copy, migrations.RunPython.noop)]
