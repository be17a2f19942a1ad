"""Alert rules on the command line: tested, created, changed, silenced, and what they did."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from tests.controller.conftest import SIZE, World, operated

from hekla.apps.alerts import services
from hekla.apps.alerts.models import AlertRule
from hekla.lib import clock

RULE = """\
name: few cordoned
measure: nodes_cordoned
cluster: simulated
comparison: below
threshold: 1
actions: [{kind: notify, roles: [owner]}]
"""


@pytest.fixture
def world(transactional_db: None, settings: Any, tmp_path: Any) -> Iterator[World]:
    with operated([{"name": "n", "allocatable": SIZE}], settings, tmp_path) as made:
        yield made


def test_a_rule_from_its_test_to_its_history(console: Any, tmp_path: Any, world: World) -> None:
    file, change = tmp_path / "rule.yaml", tmp_path / "change.yaml"
    file.write_text(RULE)
    change.write_text("severity: critical\n")
    assert "node_not_ready" in console("alert", "measures").output
    found = console("alert", "test", file).output
    assert "1 of 1 values are beyond the threshold." in found
    assert "Past values of this measure are not recorded." in found
    assert (
        "few cordoned is saved: Nodes cordoned, by cluster: below 1 nodes." in console("alert", "create", file).output
    )
    assert "is saved" in console("alert", "edit", "few cordoned", change).output
    assert "critical" in console("alert", "rules").output
    services.evaluate(now=clock.now())
    services.act_due(now=clock.now())
    assert "firing" in console("alert", "list").output
    history = console("alert", "history", "few cordoned").output
    assert "normal to firing" in history
    assert "notify (fire)" in history
    silenced = console("alert", "silence", "few cordoned", "--because", "maintenance").output
    assert "is silenced until" in silenced
    assert "is not silenced" in console("alert", "silence", "few cordoned", "--end").output
    found = AlertRule.objects.get()
    found.pk, found.uid, found.tenant, found.looked_at = None, uuid4(), world.tenant, None
    found.save()
    refusal = console("alert", "delete", "few cordoned")
    assert (refusal.exit_code, "Several rules are named" in refusal.output) == (1, True)
    found.delete()
    assert "is deleted" in console("alert", "delete", "few cordoned").output
    assert "No alert rules." in console("alert", "rules").output
