"""Metrics of open pages in this process."""

from prometheus_client import Gauge, Histogram

OPEN_SOCKETS = Gauge("hekla_live_open_sockets", "Open sockets of pages and logs.")
RENDERING_SECONDS = Histogram(
    "hekla_live_rendering_cpu_seconds",
    "Renderings made for open pages: each is sent to all who see the same.",
    ["view"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5),
)
