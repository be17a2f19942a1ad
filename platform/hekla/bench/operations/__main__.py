"""`python -m hekla.bench.operations`: prints progress on stderr and the result as one JSON object on stdout."""

import argparse
import json
import sys
import time
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

from hekla.bench.operations.size import OperationsSize
from hekla.bench.servers import servers
from hekla.launcher.terminal import LaunchRefused

_HOUR_SECONDS = 3600


def main() -> int:
    """Start the servers, let a day pass, repeat it, and measure."""
    options = _parser().parse_args()
    size = OperationsSize(**{name: getattr(options, name) for name in asdict(OperationsSize())})
    try:
        with servers():
            print(json.dumps(_measure(size, options.repeat, options.page)))
    except LaunchRefused as error:
        _say(str(error))
        return 1
    return 0


def _measure(size: OperationsSize, repeat: int, only: list[str]) -> dict[str, Any]:
    """Everything.

    Django's environment is set only now, so everything that needs Django is imported here.
    """
    import django  # noqa: PLC0415

    django.setup()
    from django.core.management import call_command  # noqa: PLC0415

    from hekla.bench.operations import dashboards, history, storage, world  # noqa: PLC0415
    from hekla.bench.operations.day import AFTER, SimulatedDay  # noqa: PLC0415

    call_command("migrate", verbosity=0)
    end = datetime.now(tz=UTC).replace(minute=0, second=0, microsecond=0)
    begin, seconds = end - timedelta(minutes=size.minutes), dict[str, float]()
    day = SimulatedDay(size, world.make(size, begin), begin)
    began = time.monotonic()
    day.run(_say)
    seconds["day"] = time.monotonic() - began
    hours = history.repeat(size.days - 1, (begin, end), end + AFTER, _say)
    seconds["history"] = time.monotonic() - began - seconds["day"]
    tables = storage.measure()
    timings = [asdict(timing) for timing in dashboards.measure(repeat, end, _say, only=only)]
    costs = [asdict(cost) | {"core_percent": 100 * cost.seconds / _HOUR_SECONDS} for cost in day.costs]
    facts = {"repeat": repeat, "hours_computed": hours, "seconds": seconds}
    return asdict(size) | facts | {"roll_up": costs, "tables": tables, "pages": timings}


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="hekla bench operations")
    for name, value in asdict(OperationsSize()).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=value)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--page", action="append", default=[])
    return parser


if __name__ == "__main__":
    sys.exit(main())
