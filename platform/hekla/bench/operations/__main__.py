"""`python -m hekla.bench.operations`: prints progress on stderr and the result as one JSON object on stdout."""

import argparse
import json
import sys
import time
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hekla.bench.operations.filled import FilledDays
from hekla.bench.operations.size import OperationsSize
from hekla.bench.servers import servers
from hekla.launcher.terminal import LaunchRefused

_HOUR_SECONDS = 3600


def main() -> int:
    """Start the servers, let a day pass, repeat it, and measure."""
    options = _parser().parse_args()
    size = OperationsSize(**{name: getattr(options, name) for name in asdict(OperationsSize())})
    try:
        filled = FilledDays.read(options.data, size) if options.data else None
        with servers(options.data) as folder:
            print(json.dumps(_measure(filled, size, folder, options)))
    except LaunchRefused as error:
        _say(str(error))
        return 1
    return 0


def _measure(
    filled: FilledDays | None, size: OperationsSize, folder: Path, options: argparse.Namespace
) -> dict[str, Any]:
    """Everything.

    Django's environment is set only now, so everything that needs Django is imported here.
    """
    import django  # noqa: PLC0415

    django.setup()
    from django.core.management import call_command  # noqa: PLC0415

    from hekla.bench.operations import dashboards, living, storage  # noqa: PLC0415

    call_command("migrate", verbosity=0)
    filled = filled or _first_day(size, folder)
    if not filled.has_readers:
        living.add(now=filled.end)
        filled.has_readers = True
        filled.write(folder)
    _add_days(filled, folder)
    tables = storage.measure()
    timings = dashboards.measure(options.repeat, filled.end, _say, only=options.page) if options.repeat else ()
    costs = [cost | {"core_percent": 100 * cost["seconds"] / _HOUR_SECONDS} for cost in filled.roll_up]
    facts = {"repeat": options.repeat, "hours_computed": filled.hours, "seconds": filled.seconds}
    pages = [asdict(timing) for timing in timings]
    return asdict(size) | {"days": filled.days} | facts | {"roll_up": costs, "tables": tables, "pages": pages}


def _first_day(size: OperationsSize, folder: Path) -> FilledDays:
    from hekla.bench.operations import world  # noqa: PLC0415
    from hekla.bench.operations.day import SimulatedDay  # noqa: PLC0415
    from hekla.launcher.gc_tuning import settle  # noqa: PLC0415

    end = datetime.now(tz=UTC).replace(minute=0, second=0, microsecond=0)
    filled = FilledDays(size, end)
    begin, began = end - timedelta(minutes=size.minutes), time.monotonic()
    day = SimulatedDay(size, world.make(size, begin), begin)
    settle()  # as in a worker
    day.run(_say)
    filled.seconds = {"day": time.monotonic() - began, "history": 0.0}
    filled.roll_up = [asdict(cost) | {"seconds": cost.seconds} for cost in day.costs]
    filled.days = 1
    filled.write(folder)
    return filled


def _add_days(filled: FilledDays, folder: Path) -> None:
    """Repeat the day for the days that are missing."""
    from hekla.bench.operations import history  # noqa: PLC0415
    from hekla.bench.operations.day import AFTER  # noqa: PLC0415

    while filled.days < filled.size.days:
        began = time.monotonic()
        filled.hours += history.repeat(filled.days, (filled.begin, filled.end), filled.end + AFTER)
        filled.days += 1
        took = time.monotonic() - began
        filled.seconds["history"] += took
        filled.write(folder)
        _say(f"{filled.days} of {filled.size.days} days have measures, the last one after {took:.1f} s")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="hekla bench operations")
    for name, value in asdict(OperationsSize()).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=value)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--page", action="append", default=[])
    parser.add_argument("--data", type=Path)
    return parser


if __name__ == "__main__":
    sys.exit(main())
