"""`hekla bench cluster`: the bind rate on a dedicated Kubernetes cluster."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from hekla.cli import output
from hekla.cli.client import Failure

_MODULE = "hekla.bench.cluster"  # a separate process, with its own servers and database
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("cluster")
@click.option("--kubeconfig", type=_FILE, required=True, help="Kubeconfig of the cluster, with full permissions.")
@click.option("--kube-scheduler", type=_FILE, help="Program kube-scheduler, to measure it too.")
@click.option("--jobs", type=click.IntRange(1, 10_000), default=200, show_default=True, help="Jobs at once.")
@click.option("--gang", type=click.IntRange(1, 1000), default=10, show_default=True, help="Pods of each job.")
@click.option("--seconds", type=click.FloatRange(1), default=60.0, show_default=True, help="How long each pod runs.")
@click.option(
    "--per-second",
    type=click.FloatRange(0.1, 100),
    default=2.0,
    show_default=True,
    help="Jobs per second of the steady load.",
)
@click.option(
    "--repeat",
    type=click.IntRange(1, 100),
    default=3,
    show_default=True,
    help="Repetitions, alternating between the schedulers.",
)
@click.option(
    "--running",
    type=click.IntRange(100, 1_000_000),
    help="Fill the cluster instead, and restart there.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def cluster(as_json: bool, **options: object) -> None:
    """Bind the same pods with Hekla and with other schedulers in turn. Use a cluster of simulated nodes."""
    found = _measured(options)
    if as_json:
        click.echo(json.dumps(found))
    elif "running" in found:
        _tell_beginning(found)
    else:
        _tell_binds(found)


def _tell_binds(found: dict[str, Any]) -> None:
    click.echo(f"{found['pods']:,} pods in gangs of {found['gang']}, {found['nodes']:,} machines; ", nl=False)
    click.echo(f"binds a second, medians of {found['repeat']}")
    rows = [
        (who, row["binds_per_second"], row["binds_per_second_from_the_start"]) for who, row in found["binders"].items()
    ]
    output.table(("SCHEDULER", "FIRST TO LAST BIND", "START TO LAST BIND"), rows, "")
    click.echo()
    written = ", ".join(f"{name} {count:g}" for name, count in found["writes_per_pod"].items())
    click.echo(f"Hekla's writes per pod: {written}; its controller used {found['cpu_seconds']:g} s of processor.")
    waits = found["submit_to_bound_ms"]
    click.echo(f"{found['per_second']:g} jobs a second, milliseconds from submission to bind: ", nl=False)
    click.echo(f"p50 {waits['p50']}, p99 {waits['p99']}")


def _tell_beginning(found: dict[str, Any]) -> None:
    click.echo(f"{found['running']:,} pods run on {found['nodes']:,} machines; the controller was killed.")
    click.echo(f"From the start of the next one to its first bind {found['seconds_to_the_first_bind']:g} s. ", nl=False)
    click.echo(f"At most it had {found['peak_mib_begun_anew']:,} MiB; the one before it {found['peak_mib']:,}.")


def _measured(options: dict[str, object]) -> dict[str, Any]:
    words = [f"--{name.replace('_', '-')}={value}" for name, value in options.items() if value is not None]
    done = subprocess.run([sys.executable, "-P", "-m", _MODULE, *words], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise Failure("The cluster could not be measured.")
    found: dict[str, Any] = json.loads(done.stdout)
    return found
