"""How a whole run of the tests is distributed: every file belongs to one worker or to all."""

from collections import Counter

import pytest
from tests.support.shares import owner

from hekla.lib.checkout import CHECKOUT

FILES = sorted((CHECKOUT / "tests").rglob("test_*.py"))
WORKERS = 3


def test_many_files_belong_to_one_worker_and_all_workers_have_some() -> None:
    shares = Counter(owner(file, CHECKOUT, WORKERS) for file in FILES)
    assert set(shares) == {None, *range(WORKERS)}
    assert min(shares[number] for number in range(WORKERS)) > 40


@pytest.mark.parametrize(
    "name", ["e2e/test_people.py", "apps/test_access.py", "apps/test_cluster_keys.py", "conftest.py"]
)
def test_long_files_and_those_with_a_browser_or_kubernetes_belong_to_all(name: str) -> None:
    assert owner(CHECKOUT / "tests" / name, CHECKOUT, WORKERS) is None
