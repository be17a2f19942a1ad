"""`python3 manage.py lock`: resolves the versions of all packages again, with hashes, for every platform.

The lock files contain no registry URL, so each machine uses its own. Versions change only if pyproject.toml requires
it; with `--upgrade` all of them can change.
"""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from hekla.launcher.terminal import step
from hekla.lib.checkout import CHECKOUT

_LOCKS = CHECKOUT / "deploy" / "requirements"


def refresh(arguments: Sequence[str]) -> int:
    """Write both lock files: first `test.txt`, which includes everything, then `run.txt` with the same versions."""
    with step("choosing the versions of the test tools and everything else"):
        _compile("test.txt", ["--extra", "dev", *arguments])
    with step("taking the versions of what runs from them"):
        _compile("run.txt", ["--constraints", str(_LOCKS / "test.txt")])
    return 0


def _compile(name: str, extra: Sequence[str]) -> None:
    uv = str(Path(sys.executable).with_name("uv"))
    shape = ["--universal", "--generate-hashes", "--no-annotate", "--no-header", "--python-version", "3.11", "--quiet"]
    subprocess.run(
        [uv, "pip", "compile", *shape, "--output-file", f"deploy/requirements/{name}", *extra, "pyproject.toml"],
        cwd=CHECKOUT,
        stdout=subprocess.DEVNULL,
        check=True,
    )
