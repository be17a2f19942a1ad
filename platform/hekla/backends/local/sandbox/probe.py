"""`python -I -S probe.py`: tries each layer in a process of its own, and prints one JSON object: what failed, by layer.

An empty text means that the layer works. A process cannot leave a sandbox, and one with threads cannot enter one, so
this is a program.
"""

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable

_NOBODY = 65534


def main() -> None:
    """Print the result for all layers."""
    sys.path.append(os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 4)))
    from hekla.backends.local.sandbox.order import LAYERS  # noqa: PLC0415  (the path is set above)

    print(json.dumps({layer: _failure(layer) for layer in LAYERS}))


def _failure(layer: str) -> str:
    """Why the layer does not work; empty if it does."""
    root = tempfile.mkdtemp(prefix="hekla-sandbox-")
    try:
        return _child(lambda report: _try(layer, root, report))
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _try(layer: str, root: str, report: int) -> None:
    """Apply one layer, as a shim and its children do."""
    from hekla.backends.local.sandbox import init  # noqa: PLC0415
    from hekla.backends.local.sandbox.order import READ_ONLY, SandboxOrder  # noqa: PLC0415

    uid = _NOBODY if os.geteuid() == 0 else 0
    order = SandboxOrder(paths=[(READ_ONLY, "/usr", "/usr")], root=root, uid=uid, layers=[layer])
    init.prepare(order)

    def enter(_report: int) -> None:
        init.enter(order)
        init.restrict(order)

    os.write(report, _child(enter).encode())


def _child(work: Callable[[int], None]) -> str:
    """Do this work in a child process. Returns its report, or the error that ended it."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        try:
            work(writer)
        except Exception as error:
            os.write(writer, str(error).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as report:
        text = report.read().decode(errors="replace")
    os.wait()
    return text


if __name__ == "__main__":
    main()
