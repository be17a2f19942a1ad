"""Pods in containers of a Podman without root: the same contract, for a console that runs as the same user."""

import re
import sys

import pytest
from tests.podman import rootless
from tests.podman.programs import NoPodman

from hekla.lib.checkout import CHECKOUT

FILES = ("tests/backends/test_contract.py", "tests/backends/local/test_container_access.py")
NOWHERE = {"DATABASE_URL": "postgresql:///none?host=/nonexistent", "VALKEY_URL": "unix:///nonexistent?db=0"}
LEAST = 45
"""As many tests as that are about containers."""


@pytest.mark.slow
def test_contract_holds_without_root() -> None:
    options = ["-q", "-n", "0", "-p", "no:cacheprovider", "--tb=short", "-k", "containers or container_access"]
    command = [sys.executable, "-B", "-m", "pytest", "--rootdir", str(CHECKOUT), *options]
    try:
        done = rootless.run([*command, *(str(CHECKOUT / file) for file in FILES)], NOWHERE)
    except NoPodman as missing:
        pytest.skip(str(missing))
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) >= LEAST
