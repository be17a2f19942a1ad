"""Submitting: from a manifest, or from a job that was."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from hekla.cli import manifest, output
from hekla.cli.client import Client, Failure, client_of
from hekla.cli.flows import submit_flow
from hekla.cli.places import make_queue
from hekla.cli.servers import Choice
from hekla.cli.watch import follow


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--tenant", help="For which of your tenants (short name); without it for the first.")
@click.option("--queue", help="Instead of the queue in the manifest.")
@click.option("--name", help="Instead of the name in the manifest.")
@click.option("--dry-run", is_flag=True, help="Only say whether the console would take the job.")
@click.option("--watch", is_flag=True, help="Follow the job until it ends.")
@click.option("--json", "as_json", is_flag=True, help="Print the console's answer.")
@click.pass_obj
def submit(
    choice: Choice,
    file: Path,
    tenant: str | None,
    queue: str | None,
    name: str | None,
    dry_run: bool,
    watch: bool,
    as_json: bool,
) -> None:
    """Submit the job in FILE: a manifest of Volcano, Kubeflow, Kubernetes or OpenPAI in YAML, or a JobSpec document.

    A JobFlow of Volcano is started, and the JobTemplates beside it are kept; --queue is for jobs alone. A Queue of
    Volcano by itself is made, if you are an operator or a platform admin. Files beside the manifest that a command
    names (python train.py) go along, as do those in the annotation hekla.io/files.
    """
    if (text := manifest.read_queue(file)) is not None:
        if dry_run or watch or tenant or queue or name:
            raise Failure("A queue is made as its manifest says; of the options it takes only --json.")
        make_queue(client_of(choice), text, as_json=as_json)
        return
    if flow := manifest.read_flow(file, name=name):
        _notes(flow.warnings, flow.files)
        submit_flow(client_of(choice), flow, tenant=tenant, dry_run=dry_run, watch=watch)
        return
    read = manifest.read(file, name=name, queue=queue)
    client = client_of(choice)
    _notes(read.warnings, () if as_json else read.files)
    answer = client.post("jobs", read.document, tenant=tenant, dry_run="1" if dry_run else None)
    if dry_run and not as_json:
        click.echo("The console would take this job.")
    elif as_json:
        output.as_json(answer)
    if not dry_run:
        _go_on(client, answer["job"], watch=watch, quiet=as_json)


@click.command()
@click.argument("job")
@click.option("--name", required=True, help="What the new job is called.")
@click.option("--queue", help="Instead of the queue of the first.")
@click.option("--watch", is_flag=True, help="Follow the job until it ends.")
@click.pass_obj
def clone(choice: Choice, job: str, name: str, queue: str | None, watch: bool) -> None:
    """Submit JOB (a name or uid) once more, under another name."""
    client = client_of(choice)
    old = client.job(job)
    document = {**old["spec"], "name": name} | ({"queue": queue} if queue else {})
    _go_on(client, client.post("jobs", document, tenant=old["tenant"])["job"], watch=watch, quiet=False)


def _notes(warnings: Sequence[str], files: Sequence[str]) -> None:
    for warning in warnings:
        click.secho(f"Note: {warning}", fg="yellow", err=True)
    if files:
        click.echo(f"Files that go along: {', '.join(files)}")


def _go_on(client: Client, job: dict[str, Any], *, watch: bool, quiet: bool) -> None:
    if not quiet:
        where = f"{client.server.url}/jobs/{job['uid']}/"
        click.echo(f"Submitted {job['name']} to queue {job['queue']} of {job['tenant']}: {where}")
    if watch:
        sys.exit(follow(client, job))
