"""`hekla bench explanations`: whether what Hekla says about pending jobs comes true."""

import json
import subprocess
import sys
from typing import Any

import click

from hekla.cli.client import Failure

_MODULE = "hekla.bench.explanations"  # a separate process, since it sets the environment of Django


@click.command("explanations")
@click.option(
    "--clusters", type=click.IntRange(1, 10_000), default=100, show_default=True, help="Random clusters with offers."
)
@click.option("--days", type=click.FloatRange(0.5, 60), default=7.0, show_default=True, help="Simulated days of jobs.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Seed of all random numbers.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def explanations(clusters: int, days: float, seed: int, as_json: bool) -> None:
    """Apply the changes offered to pending jobs of random clusters, and compare predicted starts with the real ones.

    The engine decides in simulated time. This takes some minutes, and needs no server.
    """
    words = [f"--clusters={clusters}", f"--days={days}", f"--seed={seed}"]
    done = subprocess.run([sys.executable, "-P", "-m", _MODULE, *words], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise Failure("The explanations could not be measured.")
    found: dict[str, Any] = json.loads(done.stdout)
    if as_json:
        click.echo(json.dumps(found))
        return
    offers, starts = found["offers"], found["starts"]
    click.echo(f"{offers['jobs']:,} pending jobs in {clusters:,} clusters, {offers['helped']:,} with offers")
    click.echo(f"Offered changes that start the job: {_share(offers, 'offers')}")
    click.echo(f"{starts['waited']:,} of {starts['jobs']:,} jobs waited in {days:g} days, ", nl=False)
    click.echo(f"{starts['predicted']:,} with a range; half of the ranges were shorter than {starts['hours']:.1f} h")
    click.echo(f"Starts within their range: {_share(starts, 'predicted')}; {starts['early']:,} earlier")


def _share(found: dict[str, Any], whole: str) -> str:
    return f"{found['held']:,} of {found[whole]:,} ({100 * found['share']:.1f} %)"
