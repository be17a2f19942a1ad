"""The Grafana dashboard, made from the same definitions as `/metrics`: `manage.py grafana_boards` writes its file.

Gauges of rows are named by their family, so a panel of a metric that does not exist cannot be made.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hekla.pages.metrics.rows import FAMILIES, Amounts

_SOURCE = {"type": "prometheus", "uid": "${source}"}
_LABELS = {"cluster": 'cluster=~"$cluster"', "queue": 'queue=~"$queue"'}
_UNITS = {"cpu_cores": "none", "memory_bytes": "bytes", "devices": "none"}
_WIDTH, _STAT_HEIGHT, _PLOT_HEIGHT = 24, 4, 8
_OVER = 'phase{}~"completed|failed|aborted|terminated"'
Query = tuple[str, str]
"""An expression, and the legend of its curves."""


@dataclass(frozen=True, slots=True)
class Panel:
    """Curves, or a number (`is_stat`). `width`: of 24. `alarm`: from this value on it is red; below 1 if `is_low`."""

    title: str
    text: str
    queries: Sequence[Query]
    unit: str = "none"
    width: int = 8
    is_stat: bool = False
    alarm: float | None = None
    is_low: bool = False


@dataclass(frozen=True, slots=True)
class BoardRow:
    """A row of the dashboard."""

    title: str
    panels: Sequence[Panel]


_families = {family.name: family for family in FAMILIES}


def gauge_query(name: str, legend: str = "", *, where: str = "", by: Sequence[str] = ()) -> Query:
    """The greatest value of a gauge of rows by its labels: several processes export the same rows. Raises KeyError."""
    labels = [*(by or _families[name].labels)]
    conditions = [_LABELS[label] for label in _families[name].labels if label in _LABELS]
    selector = ",".join([*conditions, *([where] if where else [])])
    grouped = f"max by ({', '.join(labels)}) ({name}{{{selector}}})" if labels else f"max({name})"
    return grouped, legend or " ".join(f"{{{{{label}}}}}" for label in labels)


def _amounts(family: str, unit: str) -> Query:
    """An amount of a resource by cluster or queue."""
    found = _families[family]
    if not isinstance(found, Amounts):
        raise TypeError(family)
    by = [found.labels[-1], *(["resource"] if unit == "devices" else [])]
    return _amounts_of(family, unit, found.labels, by)


def _amounts_of(family: str, unit: str, labels: Sequence[str], by: Sequence[str]) -> Query:
    selector = ",".join(_LABELS[label] for label in labels)
    legend = " ".join([*(f"{{{{{label}}}}}" for label in by), family.rpartition("_")[2]])
    return f"max by ({', '.join(by)}) ({family}_{unit}{{{selector}}})", legend


def _sum(name: str, by: str, inner: str, legend: str = "") -> Query:
    return f"sum by ({by}) (max by ({inner}) ({name}))", legend or f"{{{{{by}}}}}"


def _rate(metric: str, by: str, legend: str = "") -> Query:
    return f"sum by ({by}) (rate({metric}[5m]))", legend or f"{{{{{by}}}}}"


def _slow(metric: str, by: str, legend: str = "") -> Query:
    return f"histogram_quantile(0.95, sum by (le, {by}) (rate({metric}[5m])))", legend or f"{{{{{by}}}}}"


def _capacity(title: str, unit: str) -> Panel:
    queries = [_amounts(family, unit) for family in ("hekla_cluster_allocated", "hekla_cluster_allocatable")]
    return Panel(title, "Allocated to pods, and allocatable on all nodes.", queries, _UNITS[unit])


def _shares(title: str, unit: str) -> Panel:
    """Two from rows; the deserved share is a metric of the control worker."""
    by = ["queue", *(["resource"] if unit == "devices" else [])]
    deserved = _amounts_of("hekla_queue_deserved", unit, ("cluster", "queue"), by)
    queries = [_amounts("hekla_queue_allocated", unit), deserved, _amounts("hekla_queue_capability", unit)]
    text = "Allocated, deserved as the scheduler divides the cluster (from the control worker), and the limit."
    return Panel(title, text, queries, _UNITS[unit])


def _nodes(title: str, text: str, state: str, alarm: float | None = None) -> Panel:
    query = gauge_query("hekla_nodes", where=f'state="{state}"', by=("cluster",))
    return Panel(title, text, [query], is_stat=True, alarm=alarm)


def _of_family(title: str, name: str, **more: Any) -> Panel:  # noqa: ANN401
    """A panel with the family's own text."""
    legend = "{{queue}}" if "queue" in _families[name].labels else ""
    by = ("queue",) if legend else ()
    return Panel(title, _families[name].text, [gauge_query(name, legend, by=by)], **more)


_CLUSTER, _QUEUE = _LABELS["cluster"], f"{_LABELS['cluster']},{_LABELS['queue']}"
_OPEN, _ENDED = _OVER.format("!"), _OVER.format("=")
_PAUSED = f"{gauge_query('hekla_controller_lease_age_seconds')[0]} unless on (cluster) hekla_cluster_paused == 1"
_ROUTES, _ = _slow('hekla_http_request_duration_seconds_bucket{route!=""}', "route")
ROWS = (
    BoardRow(
        "Capacity and use",
        (
            _nodes("Nodes ready", "Ready, and not cordoned.", "ready"),
            _nodes("Nodes not ready", "Not ready, and not cordoned.", "not_ready", 1),
            _nodes("Nodes cordoned", "They get no new pods.", "cordoned"),
            _capacity("CPU cores", "cpu_cores"),
            _capacity("Memory", "memory_bytes"),
            _capacity("GPUs and other devices", "devices"),
        ),
    ),
    BoardRow(
        "Queues and waiting",
        (
            _of_family("Pending jobs", "hekla_queue_waiting_jobs", width=12),
            _of_family("Longest wait", "hekla_queue_oldest_wait_seconds", width=12, unit="s"),
            _shares("CPU cores of queues", "cpu_cores"),
            _shares("Memory of queues", "memory_bytes"),
            _shares("Devices of queues", "devices"),
        ),
    ),
    BoardRow(
        "Jobs",
        (
            Panel(
                "Unfinished jobs", "By phase.", [_sum(f"hekla_jobs{{{_CLUSTER},{_OPEN}}}", "phase", "cluster, phase")]
            ),
            Panel(
                "Jobs that ended in the last hour",
                "By phase.",
                [_sum(f"clamp_min(delta(hekla_jobs{{{_CLUSTER},{_ENDED}}}[1h]), 0)", "phase", "cluster, phase")],
            ),
            Panel("Unfinished pods", "By phase.", [_sum(f"hekla_pods{{{_CLUSTER}}}", "phase", "cluster, phase")]),
            Panel(
                "Unfinished jobs of queues",
                "In all phases.",
                [_sum(f"hekla_queue_jobs{{{_QUEUE},{_OPEN}}}", "queue", "queue, phase")],
                width=24,
            ),
        ),
    ),
    BoardRow(
        "Controller",
        (
            _of_family("Lease held", "hekla_controller_lease_held", width=6, is_stat=True, is_low=True),
            Panel(
                "Since the last reconciliation",
                _families["hekla_controller_lease_age_seconds"].text,
                [(_PAUSED, "{{cluster}}")],
                "s",
                6,
                is_stat=True,
                alarm=60,
            ),
            Panel(
                "Lost events",
                "Any is a fault: look at python3 manage.py audit.",
                [gauge_query("hekla_event_log_lost_numbers", "lost")],
                width=6,
                is_stat=True,
                alarm=1,
            ),
            Panel(
                "Database",
                "1 if it answers.",
                [("hekla_database_up", "{{instance}}")],
                width=6,
                is_stat=True,
                is_low=True,
            ),
            Panel(
                "Duration of reconciliations",
                "95 % are shorter.",
                [
                    _slow(
                        f"hekla_controller_reconcile_duration_seconds_bucket{{{_CLUSTER}}}",
                        "cluster",
                        "{{cluster}} reconciliation",
                    ),
                    _slow(f"hekla_engine_cycle_duration_seconds_bucket{{{_CLUSTER}}}", "cluster", "{{cluster}} cycle"),
                ],
                "s",
            ),
            Panel(
                "Binds and evictions",
                "Decided per second.",
                [
                    _rate(f"hekla_engine_binds_total{{{_CLUSTER}}}", "cluster", "{{cluster}} binds"),
                    _rate(f"hekla_engine_evictions_total{{{_CLUSTER}}}", "cluster", "{{cluster}} evictions"),
                ],
                "ops",
            ),
            Panel("Events", "Per second.", [("max(deriv(hekla_event_log_last_number[5m]))", "events")], "ops"),
            Panel("Tasks", "Per second.", [_rate("hekla_tasks_total", "task")], "ops"),
            Panel("Failed tasks", "Per second.", [_rate('hekla_tasks_total{state!="success"}', "task")], "ops"),
            Panel("Duration of tasks", "95 % are shorter.", [_slow("hekla_task_duration_seconds_bucket", "task")], "s"),
        ),
    ),
    BoardRow(
        "Web",
        (
            Panel(
                "Requests",
                "Per second, by class of the status.",
                [_rate("hekla_http_requests_total", "status")],
                "reqps",
            ),
            Panel(
                "Duration of requests",
                "95 % are shorter; the ten slowest routes.",
                [(f"topk(10, {_ROUTES})", "{{route}}")],
                "s",
            ),
            Panel(
                "Failed requests",
                "5xx per second.",
                [_rate('hekla_http_requests_total{status="5xx"}', "route")],
                "reqps",
            ),
            Panel(
                "Open pages",
                "Sockets of pages and logs.",
                [("sum by (instance) (hekla_live_open_sockets)", "{{instance}}")],
            ),
            Panel(
                "Renderings",
                "For open pages, per second.",
                [_rate("hekla_live_rendering_cpu_seconds_count", "view")],
                "ops",
            ),
            Panel(
                "CPU time of renderings",
                "Seconds per second.",
                [_rate("hekla_live_rendering_cpu_seconds_sum", "view")],
                "percentunit",
            ),
        ),
    ),
)


def dashboard() -> str:
    """The file to import into Grafana."""
    document = {
        "uid": "hekla",
        "title": "Hekla",
        "tags": ["hekla"],
        "schemaVersion": 39,
        "version": 2,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "",
        "templating": {"list": _variables()},
        "annotations": {"list": []},
        "panels": _placed(),
    }
    return json.dumps(document, indent=1) + "\n"


def _variables() -> list[dict[str, Any]]:
    source = {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus", "current": {}}
    clusters = "label_values(hekla_cluster_info, cluster)"
    queues = f"label_values(hekla_queue_waiting_jobs{{{_CLUSTER}}}, queue)"
    return [source, _choice("cluster", "Cluster", clusters), _choice("queue", "Queue", queues)]


def _choice(name: str, label: str, query: str) -> dict[str, Any]:
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": query, "refId": name},
        "definition": query,
        "includeAll": True,
        "multi": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
        "refresh": 2,
        "sort": 1,
    }


def _placed() -> list[dict[str, Any]]:
    """All panels with their places, row by row from left to right."""
    found: list[dict[str, Any]] = []
    top = 0
    for row in ROWS:
        place = {"x": 0, "y": top, "w": _WIDTH, "h": 1}
        found.append({"type": "row", "title": row.title, "collapsed": False, "gridPos": place, "panels": []})
        top, left, height = top + 1, 0, 0
        for panel in row.panels:
            if left + panel.width > _WIDTH:
                top, left = top + height, 0
            height = _STAT_HEIGHT if panel.is_stat else _PLOT_HEIGHT
            found.append(_drawn(panel, {"x": left, "y": top, "w": panel.width, "h": height}))
            left += panel.width
        top += height
    return [{"id": number, **panel} for number, panel in enumerate(found, 1)]


def _drawn(panel: Panel, place: dict[str, int]) -> dict[str, Any]:
    targets = [
        {"refId": chr(ord("A") + at), "datasource": _SOURCE, "expr": expression, "legendFormat": legend}
        for at, (expression, legend) in enumerate(panel.queries)
    ]
    curves = {
        "legend": {"displayMode": "list", "placement": "bottom"},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }
    number = {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "value"}
    return {
        "type": "stat" if panel.is_stat else "timeseries",
        "title": panel.title,
        "description": panel.text,
        "datasource": _SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0, **_colours(panel)}, "overrides": []},
        "targets": targets,
        "options": number if panel.is_stat else curves,
    }


def _colours(panel: Panel) -> dict[str, Any]:
    """Green on one side of the threshold, red on the other."""
    if panel.alarm is None and not panel.is_low:
        return {}
    first, then = ("red", "green") if panel.is_low else ("green", "red")
    steps = [{"color": first, "value": None}, {"color": then, "value": 1 if panel.is_low else panel.alarm}]
    return {"thresholds": {"mode": "absolute", "steps": steps}}
