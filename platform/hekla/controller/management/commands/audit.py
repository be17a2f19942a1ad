"""Check that event log, rows and backends agree. Operators can run it at any time; it changes nothing."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from hekla.controller import audit


class Command(BaseCommand):
    help = "Compare the log, the rows and what really runs; say what is wrong. The exit status is 1 if something is."

    def handle(self, *_args: Any, **_options: Any) -> None:  # noqa: ANN401
        """Print a line for each finding. Raises CommandError if there are any."""
        found = audit.findings()
        for sentence in found:
            self.stdout.write(sentence)
        if found:
            raise CommandError(f"Findings: {len(found)}.")
        self.stdout.write("All is well: the log, the rows and what runs tell one story.")
