"""Figures for Prometheus: what the rows say at a scrape (`rows`), and what each process measures of itself.

Requests and tasks are measured here; turns, cycles and open pages where they happen, in modules called `instruments`.
"""

from prometheus_client import disable_created_metrics

# Since when each figure is counted: as many lines again that nobody asks for.
disable_created_metrics()  # type: ignore[no-untyped-call]
