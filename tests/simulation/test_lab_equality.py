"""The policy lab repeats what real controllers decided: random days, recorded by the whole platform."""

from pathlib import Path
from typing import Any

import pytest
from tests.simulation import recorded_days
from tests.simulation.recorded_days import BEGIN, POLICY, RecordedDays

from hekla.controller.controllers import controllers
from hekla.engine.policy import DEFAULT_POLICY_TEXT, parse
from hekla.simulation.lab import results, simulated_run
from hekla.simulation.lab.differences import differences
from hekla.simulation.lab.workload import with_estimates
from hekla.simulation.recorded_workload import recorded_workload


@pytest.fixture
def home(transactional_db: None, settings: Any, tmp_path: Path) -> None:
    settings.HEKLA_HOME, settings.CHECK_ENGINE = tmp_path, False
    controllers.reset()


def _thorough(policy: str, seeds: range) -> list[Any]:
    return [pytest.param(seed, 30, policy, marks=pytest.mark.thorough) for seed in seeds]


@pytest.mark.parametrize(
    ("seed", "jobs", "policy"),
    [
        (4, 14, POLICY),
        (1, 14, DEFAULT_POLICY_TEXT),
        *_thorough(POLICY, range(1, 12)),
        *_thorough(DEFAULT_POLICY_TEXT, range(1, 4)),
    ],
)
def test_recorded_days_are_repeated(
    home: None, seed: int, jobs: int, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorded_days, "POLICY", policy)
    days = RecordedDays(seed, jobs)
    world = days.make()
    workload = with_estimates(recorded_workload(world.cluster, BEGIN, days.now, now=days.now))
    outcome = simulated_run.run(workload, parse(workload.policies[0].text))
    found = results.trust(workload, outcome.histories)
    assert found is not None
    assert found.equal_binds == found.binds > jobs, differences(workload, outcome.histories, lacks_nodes=False).listed
