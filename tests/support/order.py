"""A pytest plugin: the order of test files, and which of several workers takes them.

Files with tests in a browser go to one worker (`_Files`): another would start a console and a Chromium of its own for
them. It takes the longest of all workers, so they come first there. Next come tests that need Kubernetes, so that its
control plane, which uses a core's part also when idle, can end soon. Files with slow tests come before the others:
otherwise one worker runs the slowest while the others are done. The order within a file stays, except for its tests in
a browser.

In a single process the tests in a browser come last, for the reason that `browser` gives.
"""

import os
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest
from tests.support.browser import needs_browser
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

_BROWSER = "browser"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sorts the tests; a file with a browser test is as a whole among the first or the last."""
    are_many = "PYTEST_XDIST_WORKER" in os.environ
    in_browser: dict[Path, bool] = defaultdict(bool)
    is_first: dict[Path, bool] = defaultdict(bool)
    is_long: dict[Path, bool] = defaultdict(bool)
    for item in items:
        is_first[item.path] |= are_many and item.get_closest_marker("kubernetes") is not None
        in_browser[item.path] |= needs_browser(item)
        is_long[item.path] |= are_many and item.get_closest_marker("slow") is not None

    def place(item: pytest.Item) -> tuple[bool, ...]:
        path = item.path
        is_late = in_browser[path] is not are_many
        return is_late, not is_first[path], not is_long[path], needs_browser(item)

    items.sort(key=place)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling | None:
    """The distribution of whole files (`--dist loadfile`)."""
    return _Files(config, log) if config.getoption("dist") == "loadfile" else None


class _Files(LoadFileScheduling):
    """A worker takes a file, or all files with tests in a browser."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return _BROWSER if _names_browser(self.config.rootpath / file) else file


@cache
def _names_browser(file: Path) -> bool:
    """Whether tests of the file have the mark `browser`. The process that distributes the tests knows names only."""
    return file.is_file() and "pytest.mark.browser" in file.read_text(encoding="utf-8")
