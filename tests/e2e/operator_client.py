"""Commands to a running console, beside its pages."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]


class Operator:
    """A client of `tests.support.operator`."""

    def __init__(self, home: Path) -> None:
        path = os.pathsep.join([str(CHECKOUT / "platform"), str(CHECKOUT)])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.operator", str(home)],
            cwd=CHECKOUT,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, **command: Any) -> Any:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate(timeout=30)
