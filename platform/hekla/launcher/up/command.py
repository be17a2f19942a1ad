"""The command `up`: its options, its steps and its output."""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from hekla import __version__
from hekla.backends.local import isolation
from hekla.launcher.terminal import LaunchRefused, OtherVersion, say
from hekla.launcher.up.home import Home
from hekla.launcher.up.journal import Journal
from hekla.launcher.up.leftovers import end_pods
from hekla.launcher.up.network import check_free, url
from hekla.launcher.up.roles import Address
from hekla.launcher.up.run import Startup
from hekla.launcher.up.supervisor import Stopped, Supervisor
from hekla.lib.checkout import CHECKOUT


def main(argv: Sequence[str]) -> int:
    """Run Hekla until it is stopped. Returns the exit status. Raises LaunchRefused."""
    options = _parser().parse_args(argv)
    home = Home(Path(os.path.abspath(options.data))) if options.data else Home.default()
    address = Address(options.host, options.port)
    say(f"Hekla {__version__}, data in {home.path}")
    _refuse_foreign(home, options.reset)
    home.open()
    with home.held(url(address)):
        home.check_space()
        check_free(address)
        if options.reset:
            _reset(home, sure=options.yes)
        return _run(home, address, demo=options.demo)


def _run(home: Home, address: Address, *, demo: bool) -> int:
    journal = Journal(home.logs)
    journal.holding = True
    began = time.monotonic()
    with Supervisor(journal, home.path / "processes.json") as supervisor:
        run = Startup(home, address, supervisor)
        try:
            link = run.bring_up(demo=demo)
            _say_ready(run.public_url, link, time.monotonic() - began)
            _say_missing_layers()
            run.complete()
            journal.release(show=False)
            supervisor.run_forever(run.watch_disk)
        except Stopped:
            journal.release(show=False)
            say("\nStopping. (Ctrl-C again: at once.)")
        except OtherVersion:
            journal.release(show=False)
            raise
        except BaseException:
            journal.release(show=True)
            raise
    say("Stopped. Jobs that run on this machine go on; the next start finds them.")
    return 0


def _say_ready(address: str, link: str, seconds: float) -> None:
    say(f"\n  Hekla is ready in {seconds:.1f} s:  {address}/\n")
    if link:
        say(f"  Sign in as the administrator, once:\n  {address}{link}\n")
    say("  Ctrl-C stops it.\n")


def _say_missing_layers() -> None:
    """Say which layers of isolation this machine lacks for its pods, in the words of the cluster's page."""
    if isolation.failures():
        say("  " + "\n  ".join(isolation.sentences()) + "\n")


def _refuse_foreign(home: Home, reset: bool) -> None:
    if reset and home.path.exists() and not home.is_ours:
        raise LaunchRefused(f"{home.path} was not made by Hekla, so --reset does not touch it.")


def _reset(home: Home, *, sure: bool) -> None:
    if not sure:
        if not sys.stdin.isatty():
            raise LaunchRefused("--reset removes all data; where nobody can be asked, it wants --yes as well.")
        answer = input(f"Remove all jobs, people and files in {home.path}? Type yes: ")
        if answer.strip().lower() != "yes":
            raise LaunchRefused("Nothing was removed.")
    end_pods(home.path)
    home.wipe()
    home.open()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("manage.py up", description="Start Hekla on this machine, until Ctrl-C.")
    parser.add_argument("--port", type=_port, default=8000, help="port (default: 8000)")
    parser.add_argument("--host", default="127.0.0.1", help="address (default: 127.0.0.1); 0.0.0.0: all")
    parser.add_argument("--data", metavar="FOLDER", help=f"data folder (default: {CHECKOUT / '.hekla'})")
    parser.add_argument("--demo", action="store_true", help="add simulated teams with a week of history")
    parser.add_argument("--reset", action="store_true", help="remove all data first, after a confirmation")
    parser.add_argument("--yes", action="store_true", help="with --reset: skip the confirmation")
    return parser


def _port(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 65535:  # noqa: PLR2004
        raise argparse.ArgumentTypeError("a port is a number from 1 to 65535")
    return int(text)
