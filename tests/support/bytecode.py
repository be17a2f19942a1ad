"""A pytest plugin: before the workers of a whole run start, rewrites the assertions of all test modules, on all cores.

pytest keeps the rewritten modules as bytecode. In a new checkout each worker would rewrite all of them, at the same
time as the others: ten CPU seconds each.
"""

import os
import sys
from pathlib import Path

import pytest
from _pytest.assertion import rewrite

_CORES = os.cpu_count() or 1


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Each fork takes its part of the modules."""
    is_distributor = bool(config.getoption("numprocesses", None)) and not hasattr(config, "workerinput")
    is_whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    if not is_distributor or not is_whole or sys.dont_write_bytecode or not hasattr(os, "fork"):
        return
    modules = sorted(file for kind in ("test_*.py", "conftest.py") for file in (config.rootpath / "tests").rglob(kind))
    forks = [_fork(modules[number::_CORES], config) for number in range(_CORES)]
    for fork in forks:
        os.waitpid(fork, 0)


def _fork(modules: list[Path], config: pytest.Config) -> int:
    if fork := os.fork():
        return fork
    try:
        for module in modules:
            _keep(module, config)
    finally:
        os._exit(0)  # what is missing, a worker rewrites


def _keep(module: Path, config: pytest.Config) -> None:
    """Rewrites the module and keeps it, unless its bytecode is current."""
    state = config.stash[rewrite.assertstate_key]
    folder = rewrite.get_cache_dir(module)
    bytecode = folder / f"{module.stem}{rewrite.PYC_TAIL}"
    if rewrite.try_makedirs(folder) and rewrite._read_pyc(module, bytecode, state.trace) is None:
        source, code = rewrite._rewrite_test(module, config)
        rewrite._write_pyc(state, code, source, bytecode)
