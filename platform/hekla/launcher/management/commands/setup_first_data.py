"""Creates the first rows of a new platform. Repeated runs change nothing and print a new sign-in link."""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from hekla.launcher import first_data


class Command(BaseCommand):
    help = "Make the first person, tenant, cluster and queue where there are none; print a one-time sign-in link."

    def add_arguments(self, parser: CommandParser) -> None:
        """`--demo` adds a simulated cluster with people and queues."""
        parser.add_argument("--demo", action="store_true")

    def handle(self, *_args: Any, **options: Any) -> None:  # noqa: ANN401
        """Print one line of JSON: the path of the sign-in link and the user name."""
        self.stdout.write(json.dumps(first_data.prepare(demo=options["demo"])))
