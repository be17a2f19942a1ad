"""A pytest plugin: before the workers of a whole run start, makes on all cores what each of them would make.

pytest rewrites the assertions of all test modules and keeps the bytecode. Hypothesis lists the characters of Unicode
and, in a thorough run, the constants of Hekla's modules, and keeps both. In a new checkout each worker would do so, at
the same time as the others: over twenty CPU seconds.
"""

import os
import sys
from pathlib import Path
from types import ModuleType

import pytest
from _pytest.assertion import rewrite
from tests.support.examples import EVERY

_CORES = os.cpu_count() or 1


def pytest_sessionstart(session: pytest.Session) -> None:
    """Each fork takes its part of the modules."""
    config = session.config
    is_distributor = bool(config.getoption("numprocesses", None)) and not hasattr(config, "workerinput")
    is_whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    if not is_distributor or not is_whole or sys.dont_write_bytecode or not hasattr(os, "fork"):
        return
    modules = sorted(file for kind in ("test_*.py", "conftest.py") for file in (config.rootpath / "tests").rglob(kind))
    code = sorted((config.rootpath / "platform" / "hekla").rglob("*.py")) if EVERY == 1 else []
    forks = [_fork(number, modules[number::_CORES], code[number::_CORES], config) for number in range(_CORES)]
    for fork in forks:
        os.waitpid(fork, 0)


def _fork(number: int, modules: list[Path], code: list[Path], config: pytest.Config) -> int:
    if fork := os.fork():
        return fork
    try:
        if number == 0:
            _list_characters()
        for module in modules:
            _rewrite(module, config)
        for file in code:
            _list_constants(file)
    finally:
        os._exit(0)  # what is missing, a worker makes


def _list_characters() -> None:
    from hypothesis.strategies import characters

    characters(codec="utf-8").validate()


def _list_constants(file: Path) -> None:
    """Lists those that Hypothesis tries as values; it asks for a module, of which it reads the file."""
    from hypothesis.internal.constants_ast import constants_from_module

    module = ModuleType(file.stem)
    module.__file__ = str(file)
    constants_from_module(module)


def _rewrite(module: Path, config: pytest.Config) -> None:
    """Rewrites the module and keeps it, unless its bytecode is current."""
    state = config.stash[rewrite.assertstate_key]
    folder = rewrite.get_cache_dir(module)
    bytecode = folder / f"{module.stem}{rewrite.PYC_TAIL}"
    if rewrite.try_makedirs(folder) and rewrite._read_pyc(module, bytecode, state.trace) is None:
        source, code = rewrite._rewrite_test(module, config)
        rewrite._write_pyc(state, code, source, bytecode)
