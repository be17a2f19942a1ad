"""Forks Hekla's processes, whose code it loads once, as `manage.py up` does: loading takes longer than their work.

Each line of the input starts one: its environment, arguments and log in JSON. The output is its PID. The log of one
that fails ends with `FAILED`. All end with this process, which ends with its input.
"""

import gc
import json
import os
import runpy
import signal
import sys
import traceback
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NoReturn

from hekla.launcher.embedded.child import follow_parent
from hekla.launcher.up import preload

FAILED = "This process ended with exit code"


def main() -> None:
    """Forks until the input ends."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # so that the kernel removes ended forks
    gc.disable()
    preload.load_console()
    for _module in preload.load_pages():
        pass
    preload.load_workers()
    gc.freeze()
    follow = partial(follow_parent, os.getpid(), signal.SIGKILL)
    for line in sys.stdin:
        environment, argv, log = json.loads(line)
        pid = os.fork()
        if pid == 0:
            follow()
            _run(environment, argv, log)
        print(pid, flush=True)


def _run(environment: Mapping[str, str], argv: Sequence[str], log: str) -> NoReturn:
    """Runs the module in the fork, and ends it."""
    code = 1
    try:
        os.setsid()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        output, nothing = os.open(log, os.O_WRONLY | os.O_APPEND), os.open(os.devnull, os.O_RDONLY)
        for source, target in ((nothing, 0), (output, 1), (output, 2)):
            os.dup2(source, target)
        os.environ.update(environment)
        gc.enable()
        sys.argv = list(argv)
        runpy.run_module(argv[0], run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        if code:
            print(FAILED, code)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
