"""Creates the first rows of a new platform. Repeated runs change nothing and print a new sign-in link."""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from hekla.launcher import first_data
from hekla.launcher.terminal import HISTORY_LINE


class Command(BaseCommand):
    help = "Make the first person, tenant, cluster and queue where there are none; print a one-time sign-in link."

    def add_arguments(self, parser: CommandParser) -> None:
        """`--demo` adds simulated teams with a week of history, and the clusters of demonstrations."""
        parser.add_argument("--demo", action="store_true")

    def handle(self, *_args: Any, **options: Any) -> None:  # noqa: ANN401
        """Print progress, and last one line of JSON: the path of the sign-in link and the user name."""
        found = first_data.prepare(demo=options["demo"], tell=self._tell)
        self.stdout.write(json.dumps(found))

    def _tell(self, part: float) -> None:
        self.stdout.write(f"{HISTORY_LINE}{part:.0%}")
        self.stdout.flush()
