"""A pytest plugin: the order of test files, and which of several workers takes them.

Files with tests in a browser go to one worker (`_Files`): another would start a console and a Chromium of its own for
them. It takes the longest of all workers, so they come first there. So do the files that kill a console. Tests that
need Kubernetes go to another worker: each would start a control plane, which uses a core's part also when idle. They
come next, so that it can end soon; the other tests of their files are spread with the rest. Files with slow tests come
before the others: otherwise one worker runs the slowest while the others are done. Then a worker runs the files that no
other has (`shares`). The order within a file stays, except for its tests in a browser or on Kubernetes.

In a single process the tests in a browser come last, for the reason that `browser` gives.
"""

import json
import os
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from itertools import chain
from pathlib import Path

import pytest
from tests.support.browser import needs_browser
from tests.support.shares import owner
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

_KUBERNETES = "kubernetes"
_SHARED = {"browser": "pytest.mark.browser", "killed": "killed_server"}
"""What a file says whose tests go to one worker together with those of other such files."""
_NOTED = "tests_with_control_plane"
"""The input of a worker with the path to which it writes the IDs of these tests. The distributor only reads IDs."""
_NOTE = pytest.StashKey[str]()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerController) -> None:
    """Tells each worker the file for its names."""
    if _NOTE not in node.config.stash:
        descriptor, path = tempfile.mkstemp(prefix="hekla-order-")
        os.close(descriptor)
        node.config.stash[_NOTE] = path
        node.config.add_cleanup(lambda: Path(path).unlink(missing_ok=True))
    node.workerinput[_NOTED] = node.config.stash[_NOTE]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sorts the tests; a file with a browser test is as a whole among the first or the last."""
    are_many = "PYTEST_XDIST_WORKER" in os.environ
    in_browser: dict[Path, bool] = defaultdict(bool)
    is_first: dict[Path, bool] = defaultdict(bool)
    has_plane: set[str] = {item.nodeid for item in items if are_many and _needs_control_plane(item)}
    is_long: dict[Path, bool] = defaultdict(bool)
    for item in items:
        in_browser[item.path] |= needs_browser(item)
        if are_many and item.nodeid not in has_plane:
            is_first[item.path] |= item.get_closest_marker("kubernetes") is not None
            is_long[item.path] |= item.get_closest_marker("slow") is not None

    def place(item: pytest.Item) -> tuple[bool, ...]:
        path = item.path
        is_late = in_browser[path] is not are_many
        is_of_all = are_many and owner(path, config.rootpath, 1) is None
        turn = (not is_first[path], not is_long[path], is_of_all)
        return is_late, item.nodeid not in has_plane, *turn, needs_browser(item)

    items.sort(key=place)
    if are_many:
        _note(config, has_plane)


def _needs_control_plane(item: pytest.Item) -> bool:
    """Whether the test needs Kubernetes, and not only Helm. A file that one worker has stays with it (`shares`)."""
    names = getattr(item, "fixturenames", ())
    is_of_helm = "helm" in names and "control_plane" not in names
    is_free = owner(item.path, item.config.rootpath, 1) is None
    return item.get_closest_marker("kubernetes") is not None and not is_of_helm and is_free


def _note(config: pytest.Config, ids: set[str]) -> None:
    """All workers write the same. A file that is renamed is whole."""
    target = Path(config.workerinput[_NOTED])  # type: ignore[attr-defined]  # xdist sets it in a worker
    own = target.with_name(f"{target.name}-{os.getpid()}")
    own.write_text(json.dumps(sorted(ids)), encoding="utf-8")
    own.rename(target)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling | None:
    """The distribution of whole files (`--dist loadfile`)."""
    return _Files(config, log) if config.getoption("dist") == "loadfile" else None


class _Files(LoadFileScheduling):
    """A worker takes a file, or all files that share a browser or a server, or all tests that need Kubernetes.

    Workers need not have the same files (`shares`): each takes the first unit in its own order that is left.
    """

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        self._orders: dict[WorkerController, list[str]] = {}

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        """The tests of a worker; one that replaces a crashed one comes late, and has all."""
        self.registered_collections[node] = list(collection)
        self._orders[node] = list(dict.fromkeys(map(self._split_scope, collection)))

    def schedule(self) -> None:
        """Queue the tests of all workers, the first time, and give each worker of them what it needs."""
        if self.collection is None:
            self.collection = list(dict.fromkeys(chain.from_iterable(self.registered_collections.values())))
            for nodeid in self.collection:
                self.workqueue.setdefault(self._split_scope(nodeid), {})[nodeid] = False
            session = self.config.pluginmanager.getplugin("session")
            session.testscollected = len(self.collection)  # for the percentage; xdist counts those of one worker
        for _unit in range(2):  # of one test, a worker would wait for the next
            for node in self.nodes:
                self._reschedule(node)

    def remove_node(self, node: WorkerController) -> str | None:
        """Queue what a crashed worker had not run, for the others. Finished units would be units without a test: the
        worker that replaces it would get them first, and wait for ever.
        """
        units = self.assigned_work[node]
        for scope in [scope for scope, unit in units.items() if all(unit.values())]:
            del units[scope]
        return super().remove_node(node)

    def _reschedule(self, node: WorkerController) -> None:
        """Give the worker another unit if it needs one soon. It ends if there is none that it can take."""
        if node.shutting_down or node not in self._orders or self._pending_of(self.assigned_work[node]) > 2:
            return
        scope = next((scope for scope in self._orders[node] if scope in self.workqueue), None)
        if scope is None:
            node.shutdown()
            return
        self.workqueue.move_to_end(scope, last=False)
        self._assign_work_unit(node)

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        if scope := _scope_named_in(self.config.rootpath / file):
            return scope
        return _KUBERNETES if nodeid in _noted(self.config.stash[_NOTE]) else file


@cache
def _noted(path: str) -> frozenset[str]:
    """What the workers wrote when they collected the tests, which is before any is distributed."""
    return frozenset(json.loads(Path(path).read_text(encoding="utf-8")))


@cache
def _scope_named_in(file: Path) -> str | None:
    """The unit of files whose tests share a browser, or a server that they kill. The distributor knows names only."""
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    return next((scope for scope, word in _SHARED.items() if word in text), None)
