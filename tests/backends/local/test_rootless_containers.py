"""Pods in containers of a Podman without root: the same contract, for a console that runs as the same user.

By default only what a missing right could break; `HEKLA_EXAMPLES=1` runs all of it.
"""

import re
import sys

import pytest
from tests.podman import rootless
from tests.podman.programs import NoPodman
from tests.support.examples import examples

from hekla.lib.checkout import CHECKOUT

FILES = ("tests/backends/test_contract.py", "tests/backends/local/test_container_access.py")
NOWHERE = {"DATABASE_URL": "postgresql:///none?host=/nonexistent", "VALKEY_URL": "unix:///nonexistent?db=0"}
NEED_RIGHTS = (
    "completion", "can_be_stopped", "log_is_read", "only_logs_of_a_removed", "usage_of_a_running",
    "image_of_one_tenant", "part_of_a_volume", "sees_only_the_volumes",
)  # fmt: skip
IS_WHOLE = examples(10) == 10
LEAST = 45 if IS_WHOLE else len(NEED_RIGHTS)
"""As many tests as that are about containers."""


@pytest.mark.slow
@pytest.mark.thorough
def test_contract_holds_without_root() -> None:
    part = "" if IS_WHOLE else f" and ({' or '.join(NEED_RIGHTS)})"
    options = ["-q", "-n", "0", "-p", "no:cacheprovider", "--tb=short", "-k", f"(containers or container_access){part}"]
    command = [sys.executable, "-B", "-m", "pytest", "--rootdir", str(CHECKOUT), *options]
    try:
        done = rootless.run([*command, *(str(CHECKOUT / file) for file in FILES)], NOWHERE)
    except NoPodman as missing:
        pytest.skip(str(missing))
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) >= LEAST
