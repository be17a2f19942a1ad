"""A pytest plugin: the order of test files.

Tests that need Kubernetes come first, so that its control plane, which uses a core's part also when idle, can end soon.
Tests in a browser come last, for the reason that `browser` gives. If several workers take one file after the other,
files with slow tests come before the others: otherwise one worker runs the slowest while the others are done. The order
within a file stays, except for its tests in a browser.
"""

import os
from collections import defaultdict
from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sorts the tests; a file with a browser test is as a whole among the last."""
    are_many = "PYTEST_XDIST_WORKER" in os.environ
    is_late: dict[Path, bool] = defaultdict(bool)
    is_first: dict[Path, bool] = defaultdict(bool)
    is_long: dict[Path, bool] = defaultdict(bool)
    for item in items:
        is_first[item.path] |= are_many and item.get_closest_marker("kubernetes") is not None
        is_late[item.path] |= _needs_browser(item)
        is_long[item.path] |= are_many and item.get_closest_marker("slow") is not None
    items.sort(
        key=lambda item: (is_late[item.path], not is_first[item.path], not is_long[item.path], _needs_browser(item))
    )


def _needs_browser(item: pytest.Item) -> bool:
    return "browser" in getattr(item, "fixturenames", ())
