"""How a whole run of the tests is distributed: every file belongs to one worker or to all."""

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support import order
from tests.support.shares import owner
from xdist.remote import Producer

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


class Worker:
    """Runs a test when it knows the next one, or that there is none, as those of xdist."""

    def __init__(self, *files: str) -> None:
        self.tests = [f"tests/apps/test_{file}.py::test_{number}" for file in files for number in range(3)]
        self.queued, self.shutting_down = list[int](), False

    def send_runtest_some(self, found: list[int]) -> None:
        self.queued += found

    def shutdown(self) -> None:
        self.shutting_down = True

    def join(self, files: Any) -> None:
        files.add_node(self)
        files.add_node_collection(self, self.tests)

    def run(self, files: Any, most: int = 100) -> list[str]:
        done = []
        while len(done) < most and len(self.queued) > (not self.shutting_down):
            place = self.queued.pop(0)
            done.append(self.tests[place])
            files.mark_test_complete(self, place)
        return done


def test_a_worker_that_replaces_a_crashed_one_runs_what_that_had_not_run(tmp_path: Path) -> None:
    note, plugins = tmp_path / "note", SimpleNamespace(getplugin=lambda _name: SimpleNamespace())
    note.write_text("[]")
    config: Any = SimpleNamespace(
        getvalue=lambda _name: ["popen"] * 2, rootpath=tmp_path, stash={order._NOTE: str(note)}, pluginmanager=plugins
    )
    files: Any = order._Files(config, Producer("files", enabled=False))
    stays, crashes, replaces = Worker("of_all", "a"), Worker("of_all", *"bcde"), Worker("of_all", *"abcde")
    for worker in (stays, crashes):
        worker.join(files)
    files.schedule()
    done = stays.run(files) + crashes.run(files, 7)
    crashed = files.remove_node(crashes)
    replaces.join(files)
    files.schedule()
    done += replaces.run(files)
    assert crashed in done
    assert sorted(done) == sorted(replaces.tests)
    assert files.tests_finished
