"""Prometheus metrics: values from the database at the time of the scrape (`rows`), and counters of each process.

Requests and tasks are measured here. Reconcile turns, scheduling cycles and open pages are measured where they happen,
in modules called `instruments`.
"""

from prometheus_client import disable_created_metrics

# No `_created` samples: they would add as many lines again, for no use.
disable_created_metrics()  # type: ignore[no-untyped-call]
