"""Writes the Grafana dashboard."""

from typing import Any

from django.core.management.base import BaseCommand

from hekla.lib.checkout import CHECKOUT
from hekla.pages.metrics.boards import dashboard

FILE = CHECKOUT / "deploy" / "grafana" / "hekla.json"


class Command(BaseCommand):
    help = "Write deploy/grafana/hekla.json, the Grafana dashboard, from the definitions of the metrics."

    def handle(self, *_args: Any, **_options: Any) -> None:  # noqa: ANN401
        """Write the file."""
        FILE.write_text(dashboard(), encoding="utf-8")
        self.stdout.write(f"Wrote {FILE}.")
