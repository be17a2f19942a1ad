"""A pytest plugin: the order of test files, and which of several workers takes them.

Files with tests in a browser go to one worker (`_Files`): another would start a console and a Chromium of its own for
them. It takes the longest of all workers, so they come first there. Tests that need Kubernetes go to another worker:
each would start a control plane, which uses a core's part also when idle. They come next, so that it can end soon; the
other tests of their files are spread with the rest. Files with slow tests come before the others: otherwise one worker
runs the slowest while the others are done. The order within a file stays, except for its tests in a browser or on
Kubernetes.

In a single process the tests in a browser come last, for the reason that `browser` gives.
"""

import json
import os
import tempfile
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest
from tests.support.browser import needs_browser
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

_BROWSER, _KUBERNETES = "browser", "kubernetes"
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
        return is_late, item.nodeid not in has_plane, not is_first[path], not is_long[path], needs_browser(item)

    items.sort(key=place)
    if are_many:
        _note(config, has_plane)


def _needs_control_plane(item: pytest.Item) -> bool:
    """Whether the test needs Kubernetes, and not only Helm."""
    names = getattr(item, "fixturenames", ())
    is_of_helm = "helm" in names and "control_plane" not in names
    return item.get_closest_marker("kubernetes") is not None and not is_of_helm


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
    """A worker takes a file, or all files with tests in a browser, or all tests that need Kubernetes."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        if _names_browser(self.config.rootpath / file):
            return _BROWSER
        return _KUBERNETES if nodeid in _noted(self.config.stash[_NOTE]) else file


@cache
def _noted(path: str) -> frozenset[str]:
    """What the workers wrote when they collected the tests, which is before any is distributed."""
    return frozenset(json.loads(Path(path).read_text(encoding="utf-8")))


@cache
def _names_browser(file: Path) -> bool:
    """Whether tests of the file have the mark `browser`. The process that distributes the tests knows names only."""
    return file.is_file() and "pytest.mark.browser" in file.read_text(encoding="utf-8")
