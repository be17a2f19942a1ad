"""A pytest plugin: in a whole run, each worker collects its share of the many short test files instead of all.

To collect every test takes half a minute of CPU, in each worker. Files about pages, the engine and the domain have most
of the tests, and none of them takes long, so they need not wait for the worker that is free first: each belongs to one
(`owner`). All workers collect the other files, which `order` distributes, and which make up for unequal shares. A
worker that replaces a crashed one collects everything.
"""

import re
import zlib
from functools import cache
from pathlib import Path

import pytest
from xdist.workermanage import WorkerController

_MANY = frozenset({"apps", "domain", "engine"})
_OTHERS = re.compile(r"pytest\.mark\.(browser|slow|kubernetes)|control_plane|one_machine|small_cluster|\bhelm\b")
"""Tests in a browser or on Kubernetes go to one worker, and long ones to the first that is free."""
_WORKERS = "workers_with_shares"
"""The input of a worker with the number of them; 0 if each collects everything."""


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerController) -> None:
    """Tell each worker how many there are."""
    is_whole = node.config.args_source is pytest.Config.ArgsSource.TESTPATHS
    is_by_file = node.config.getoption("dist") == "loadfile"
    node.workerinput[_WORKERS] = node.workerinput["workercount"] if is_whole and is_by_file else 0


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Whether the file belongs to another worker."""
    inputs = getattr(config, "workerinput", {})
    count, number = inputs.get(_WORKERS, 0), int(inputs.get("workerid", "gw0")[2:])
    if number >= count:  # a worker that replaces another, or no shares
        return None
    return True if owner(collection_path, config.rootpath, count) not in (None, number) else None


def owner(path: Path, root: Path, count: int) -> int | None:
    """The number of the worker, of so many, that alone collects this file. None if all do."""
    parts = path.relative_to(root).parts if path.is_relative_to(root) else ()
    if len(parts) < 3 or parts[0] != "tests" or parts[1] not in _MANY or not re.fullmatch(r"test_\w+\.py", path.name):
        return None
    return zlib.crc32("/".join(parts).encode()) % count if _is_short(path) else None


@cache
def _is_short(path: Path) -> bool:
    return not _OTHERS.search(path.read_text(encoding="utf-8"))
