"""`python -m hekla.bench.reconcile`: prints progress on stderr and the result as one JSON object on stdout.

The rows are created in another process, whose memory does not count.
"""

import argparse
import json
import subprocess
import sys
import time
from dataclasses import asdict

from hekla.bench.reconcile.size import ClusterSize
from hekla.bench.servers import servers
from hekla.launcher.terminal import LaunchRefused


def main() -> int:
    """Start the servers, fill the database, and measure."""
    options = _parser().parse_args()
    size = ClusterSize(options.nodes, options.pods, options.changed)
    if options.fill:
        _fill(size)
        return 0
    try:
        with servers():
            subprocess.run([sys.executable, "-P", "-m", "hekla.bench.reconcile", "--fill", *sys.argv[1:]], check=True)
            print(json.dumps(_measure(size, options.repeat)))
    except LaunchRefused as error:
        _say(str(error))
        return 1
    return 0


def _fill(size: ClusterSize) -> None:
    """Create the tables and fill them.

    Django's environment is set by the caller only now, so everything that needs Django is imported here.
    """
    import django  # noqa: PLC0415

    django.setup()
    from django.core.management import call_command  # noqa: PLC0415

    from hekla.bench.reconcile import world  # noqa: PLC0415

    call_command("migrate", verbosity=0)
    began = time.monotonic()
    world.fill(size)
    _say(f"{size.nodes:,} nodes and {size.pods:,} pods were made in {time.monotonic() - began:.0f} s")


def _measure(size: ClusterSize, repeat: int) -> dict[str, object]:
    import django  # noqa: PLC0415

    django.setup()
    from hekla.bench.reconcile.rounds import Rounds  # noqa: PLC0415
    from hekla.bench.reconcile.world import BenchWorld  # noqa: PLC0415

    return asdict(size) | {"repeat": repeat} | Rounds(BenchWorld.load(size)).measure(repeat)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    default, parser = ClusterSize(), argparse.ArgumentParser(prog="hekla bench reconcile")
    for name, value in asdict(default).items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--fill", action="store_true")
    return parser


if __name__ == "__main__":
    sys.exit(main())
