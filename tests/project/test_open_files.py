"""A server may open as many sockets as the system allows."""

import subprocess
import sys

SCRIPT = """
import resource
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (64, most))
from hekla.lib.open_files import allow_most
allow_most()
print(resource.getrlimit(resource.RLIMIT_NOFILE) == (most, most))
"""


def test_soft_limit_becomes_the_hard_limit() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"
