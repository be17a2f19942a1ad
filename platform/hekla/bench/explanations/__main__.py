"""`python -m hekla.bench.explanations`: prints the results as one JSON object on stdout. It connects to no server."""

import argparse
import json
import os
import sys

_NOWHERE = {
    "DATABASE_URL": "postgres://nobody@localhost/none",
    "VALKEY_URL": "redis://localhost:1/0",
    "HEKLA_SECRET_KEY": "bench",
    "DJANGO_SETTINGS_MODULE": "hekla.project.settings",
}


def main() -> int:
    """Measure with the options of the command line."""
    options = _parser().parse_args()
    os.environ |= _NOWHERE
    import django  # noqa: PLC0415  (its environment is set only now)

    django.setup()
    from hekla.bench.explanations import offers, week  # noqa: PLC0415

    changes = offers.measure(options.seed, options.clusters)
    starts = week.run(options.seed, options.days)
    print(json.dumps({"offers": changes.as_data(), "starts": starts.as_data()}))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="hekla bench explanations")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--clusters", type=int, default=100)
    parser.add_argument("--days", type=float, default=7.0)
    return parser


if __name__ == "__main__":
    sys.exit(main())
