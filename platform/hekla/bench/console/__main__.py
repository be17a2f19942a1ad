"""`python -m hekla.bench.console`: prints progress on stderr and the result as one JSON object on stdout."""

import argparse
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hekla.bench.console.size import Size
from hekla.bench.servers import servers
from hekla.launcher.terminal import LaunchRefused


def main() -> int:
    """Start the servers, fill a console, and measure it."""
    options = _parser().parse_args()
    size = Size(options.jobs, options.pods_per_job, options.tenants, options.nodes, options.people_per_tenant)
    try:
        with servers() as home:
            print(json.dumps(_measured(size, options, home)))
    except LaunchRefused as error:
        _say(str(error))
        return 1
    return 0


def _measured(size: Size, options: argparse.Namespace, home: Path) -> dict[str, Any]:
    if options.sockets:
        return _measure_sockets(size, options, home)
    if options.requests_a_minute:
        return _measure_flood(size, options, home)
    return _measure(size, options.repeat, options.page)


def _fill(size: Size) -> None:
    """Create the tables and fill them.

    Django's environment is set only now, so everything that needs Django is imported here.
    """
    import django  # noqa: PLC0415

    django.setup()
    from django.core.management import call_command  # noqa: PLC0415

    from hekla.bench.console import world  # noqa: PLC0415

    call_command("migrate", verbosity=0)
    began = time.monotonic()
    world.fill(size)
    _say(f"{size.jobs:,} jobs were made in {time.monotonic() - began:.0f} s")


def _measure_sockets(size: Size, options: argparse.Namespace, home: Path) -> dict[str, Any]:
    _fill(size)
    from hekla.bench.console import sockets  # noqa: PLC0415

    pace = sockets.ChangeRate(options.changes_per_second, options.seconds)
    return asdict(size) | asdict(pace) | sockets.measure(home, options.sockets, pace, say=_say)


def _measure_flood(size: Size, options: argparse.Namespace, home: Path) -> dict[str, Any]:
    _fill(size)
    from hekla.bench.console import flood  # noqa: PLC0415

    return asdict(size) | flood.measure(home, options.requests_a_minute, options.seconds, say=_say)


def _measure(size: Size, repeat: int, only: list[str]) -> dict[str, Any]:
    _fill(size)
    from hekla.apps.jobs.models import Pod  # noqa: PLC0415
    from hekla.bench.console import pages, weights  # noqa: PLC0415

    facts = asdict(size) | {"pods": Pod.objects.count(), "repeat": repeat}
    timings = [asdict(timing) for timing in pages.measure(repeat, only=only, say=_say)]
    return facts | {"pages": timings, "first_load_bytes": weights.measure()}


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    default, parser = Size(), argparse.ArgumentParser(prog="hekla bench console")
    for name, value in asdict(default).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=value)
    parser.add_argument("--repeat", type=int, default=100)
    parser.add_argument("--page", action="append", default=[])
    parser.add_argument("--sockets", type=int, default=0)
    parser.add_argument("--requests-a-minute", type=int, default=0)
    parser.add_argument("--changes-per-second", type=float, default=5.0)
    parser.add_argument("--seconds", type=float, default=30.0)
    return parser


if __name__ == "__main__":
    sys.exit(main())
