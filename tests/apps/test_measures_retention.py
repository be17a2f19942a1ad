"""Old measures are deleted some at a time, so a long pause does not lead to one huge transaction."""

from datetime import timedelta

import pytest

from hekla.apps.measures import retention, services
from hekla.apps.measures.levels import KEEP_HOURS, KEEP_MINUTES
from hekla.apps.measures.models import GpuHolding, NodeGpuTime
from hekla.lib import clock

pytestmark = pytest.mark.django_db
NOW = clock.now()
HOUR = timedelta(hours=1)


def test_old_rows_are_deleted_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "MOST_ROWS", 2)
    for hours in range(5):
        old = {1: NOW - KEEP_MINUTES - (2 + hours) * HOUR, 60: NOW - KEEP_HOURS - (2 + hours) * HOUR}
        for level, at in old.items():
            NodeGpuTime.objects.create(level=level, cluster_id=1, at=at, node="n", model="A100", useful=1)
    NodeGpuTime.objects.create(level=60, cluster_id=1, at=NOW - KEEP_MINUTES - HOUR, node="n", model="A100", useful=1)
    left = []
    for _ in range(3):
        services.roll_up(now=NOW)
        left.append([NodeGpuTime.objects.filter(level=level).count() for level in (1, 60)])
    assert left == [[3, 4], [1, 2], [0, 1]]
    assert retention.delete_oldest(GpuHolding, "finished_at", NOW) == 0
