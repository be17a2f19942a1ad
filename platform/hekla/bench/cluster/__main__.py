"""`python -m hekla.bench.cluster`: prints progress on stderr and the result as one JSON object on stdout.

It uses separate servers and a separate database in a temporary folder.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from hekla.bench.servers import servers
from hekla.launcher.terminal import LaunchRefused


def main() -> int:
    """Start the servers and run the measurements of the options."""
    options = _parser().parse_args()
    try:
        with servers() as home:
            print(json.dumps(_measured(home, options)))
    except LaunchRefused as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _measured(home: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Django's environment is set only now, so everything that needs Django is imported here."""
    import django  # noqa: PLC0415

    django.setup()
    from django.core.management import call_command  # noqa: PLC0415
    from django.db import connections  # noqa: PLC0415

    from hekla.bench.cluster import measuring  # noqa: PLC0415

    call_command("migrate", verbosity=0)
    try:
        return measuring.measure(home, options)
    finally:
        connections.close_all()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="hekla bench cluster")
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--kube-scheduler", type=Path)
    for name, value in {"jobs": 200, "gang": 10, "repeat": 3, "running": 0}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    for name, amount in {"seconds": 60.0, "per-second": 2.0}.items():
        parser.add_argument(f"--{name}", type=float, default=amount)
    return parser


if __name__ == "__main__":
    sys.exit(main())
