"""The commands of `manage.py`."""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from hekla.launcher import catalogues
from hekla.launcher.bootstrap.environment import VirtualEnvironment
from hekla.launcher.terminal import LaunchRefused, say
from hekla.lib.checkout import CHECKOUT

USAGE = """\
Hekla: a console and batch platform for machines that many AI teams share.

  python3 manage.py up      start everything on this machine, and print the address   (up --help: its options)
  python3 manage.py doctor  check this machine: isolation of pods, data folder, servers  (--json, --language)
  python3 manage.py test    run all checks and tests; with arguments, pytest with these
  python3 manage.py lock    choose the versions of the packages anew                  (--upgrade: the newest)
  python3 manage.py messages   extract and compile the translations                   (--check: change nothing)

  python3 manage.py backup FILE     save everything into one file, while people go on working
  python3 manage.py restore FILE    bring a backup back, while Hekla does not run

What else is typed goes to Django: python3 manage.py shell, makemigrations, …
The packages are installed by the first command that needs them, into .venv (HEKLA_VENV names another folder)."""

INTERRUPTED = 130


def main(argv: Sequence[str]) -> None:
    """Run the command line and exit. LaunchRefused is printed as a message, without a traceback."""
    try:
        sys.exit(_run(list(argv)))
    except LaunchRefused as refused:
        sys.exit(refused.message)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _run(argv: list[str]) -> int:
    if not argv or argv[0] in {"help", "-h", "--help"}:
        say(USAGE)
        return 0
    command = _COMMANDS.get(argv[0])
    VirtualEnvironment.of_this_checkout().enter("test" if argv[0] in {"test", "lock", "messages"} else "run")
    catalogues.compile_stale()
    return command(argv[1:]) if command else _django(argv)


def _up(arguments: list[str]) -> int:
    from hekla.launcher.up import main as up  # noqa: PLC0415  (each command loads only its own code)

    return up(arguments)


def _doctor(arguments: list[str]) -> int:
    from hekla.launcher.doctor.command import doctor  # noqa: PLC0415

    return int(doctor.main(arguments, "manage.py doctor", standalone_mode=False) or 0)


def _test(arguments: list[str]) -> int:
    from hekla.launcher.bootstrap.installer import compile_code  # noqa: PLC0415
    from hekla.launcher.verify import verify  # noqa: PLC0415

    compile_code(Path(sys.executable), CHECKOUT / "platform" / "hekla")  # as it is now, for all processes of the tests
    return verify(arguments)


def _lock(arguments: list[str]) -> int:
    from hekla.launcher.bootstrap.lock import refresh  # noqa: PLC0415

    return refresh(arguments)


def _messages(arguments: list[str]) -> int:
    from hekla.launcher.messages import main as messages  # noqa: PLC0415

    return messages(arguments)


def _django(argv: list[str]) -> int:
    from django.core.management import execute_from_command_line  # noqa: PLC0415

    from hekla.launcher.up.home import Home  # noqa: PLC0415

    home = Home.default()
    for name, value in home.environment().items():
        os.environ.setdefault(name, value)
    execute_from_command_line([str(CHECKOUT / "manage.py"), *argv])
    return 0


def _backup(arguments: list[str]) -> int:
    from hekla.launcher.backup.command import back_up  # noqa: PLC0415

    return back_up(arguments)


def _restore(arguments: list[str]) -> int:
    from hekla.launcher.backup.command import restore  # noqa: PLC0415

    return restore(arguments)


_COMMANDS: dict[str, Callable[[list[str]], int]] = {
    **{"up": _up, "doctor": _doctor, "test": _test, "lock": _lock, "messages": _messages},
    **{"backup": _backup, "restore": _restore},
}
