"""Submitting jobs: from a manifest, from an earlier job, or from a saved template."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from hekla.cli import manifest, output
from hekla.cli.client import Client, Failure, client_of
from hekla.cli.flows import submit_flow
from hekla.cli.notifications import notification_options
from hekla.cli.queues import make_queue
from hekla.cli.servers import ServerOptions
from hekla.cli.several import FileSubmission, has_several
from hekla.cli.watch import follow
from hekla.domain import formats
from hekla.domain.assignments import apply_assignments
from hekla.domain.errors import Invalid


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--tenant", help="Your tenant (short name). Default: the first.")
@click.option("--queue", help="Queue. Overrides the manifest.")
@click.option("--name", help="Job name. Overrides the manifest.")
@click.option("--dry-run", is_flag=True, help="Validate only. Submit nothing.")
@click.option("--watch", is_flag=True, help="Follow the job until it ends.")
@click.option("--json", "as_json", is_flag=True, help="Print the console's answer.")
@notification_options
@click.pass_obj
def submit(
    choice: ServerOptions,
    /,
    file: Path,
    tenant: str | None,
    queue: str | None,
    name: str | None,
    dry_run: bool,
    watch: bool,
    as_json: bool,
    **notifying: Any,  # noqa: ANN401
) -> None:
    """Submit the job in FILE: a manifest in YAML, or a JobSpec document.

    Manifests are those of Volcano, Kubeflow, Ray, Spark, Flink, Kubernetes and OpenPAI.

    A Volcano JobFlow is started and its JobTemplates are saved. --queue applies to jobs only. A Volcano CronJob becomes
    a schedule, and operators and platform admins can create Volcano Queues. Several documents in FILE, at most 100, are
    submitted one by one. If one fails, the others are still submitted, and the exit code is 1. Files next to the
    manifest that a command names (python train.py) are uploaded too, like those in the annotation hekla.io/files.
    """
    has_notifications = any(notifying.values())
    documents = manifest.read_documents(file)
    if has_several(documents) and not formats.holds_flows(documents):
        if name or watch:
            raise Failure("The options --name and --watch need a file with one job.")
        client = client_of(choice)
        sys.exit(FileSubmission(client, file, documents, tenant, queue, dry_run, notifying).run(as_json=as_json))
    if (text := manifest.read_queue(file)) is not None:
        if watch or tenant or queue or name or has_notifications:
            raise Failure("A queue is created from its manifest. Only the options --dry-run and --json are allowed.")
        make_queue(client_of(choice), text, dry_run=dry_run, as_json=as_json)
        return
    if flow := manifest.read_flow(file, name=name):
        if has_notifications:
            raise Failure("Notification options work for single jobs only. The jobs of a flow use your settings.")
        _notes(flow.warnings, flow.files)
        submit_flow(client_of(choice), flow, tenant=tenant, dry_run=dry_run, watch=watch)
        return
    read = manifest.read(file, name=name, queue=queue)
    client = client_of(choice)
    _notes(read.warnings, () if as_json else read.files)
    answer: Any = (client.check if dry_run else client.submit)(read.document, tenant=tenant, **notifying)
    if dry_run and not as_json:
        click.echo("The job is valid. Nothing was submitted.")
    elif as_json:
        output.as_json(answer)
    if not dry_run:
        _go_on(client, answer["job"], watch=watch, quiet=as_json)


def _changing(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of commands that submit a copy."""
    for option in (
        click.option("--watch", is_flag=True, help="Follow the job until it ends."),
        click.option("--dry-run", is_flag=True, help="Validate the job and print it. Submit nothing."),
        click.option(
            "--set",
            "changes",
            metavar="PLACE=VALUE",
            multiple=True,
            help="Set a field, for example tasks.main.env.LR=0.1.",
        ),
        click.option("--queue", help="Queue of the new job."),
        click.option("--name", help="Name of the new job. Default: a free name like the first."),
    ):
        command = option(command)
    return command


@click.command()
@click.argument("job")
@_changing
@click.pass_obj
def clone(choice: ServerOptions, /, job: str, **options: Any) -> None:  # noqa: ANN401
    """Submit a copy of JOB (a name or uid), with the changes of --set.

    A field is a path in the JobSpec: priority=5, tasks.worker.replicas=4,
    tasks.main.command="python train.py --epochs 20", tasks.main.resources.cpu=2. An empty value restores the default.
    """
    client = client_of(choice)
    old = client.job(job)
    _submit_copy(client, client.get(f"jobs/{old['uid']}/copy"), old["tenant"], **options)


@click.command()
@click.argument("template")
@click.option("--tenant", help="Your tenant (short name).")
@_changing
@click.pass_obj
def submit_saved_template(
    choice: ServerOptions,
    /,
    template: str,
    tenant: str | None,
    **options: Any,  # noqa: ANN401
) -> None:
    """Submit a job from the saved template TEMPLATE (its name), with the changes of --set as for `hekla job clone`."""
    client = client_of(choice)
    found = [each for each in client.pages("saved_templates", 10_000) if each["name"] == template]
    if not found:
        raise Failure(f"Unknown template “{template[:60]}”. `hekla saved-template list` lists those that you can use.")
    own = min(found, key=lambda each: (each["tenant"] != (tenant or ""), each["tenant"]))
    tenant = tenant or own["tenant"] or None
    _submit_copy(client, client.get(f"saved_templates/{own['uid']}/copy", tenant=tenant), tenant, **options)


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def list_saved_templates(choice: ServerOptions, as_json: bool) -> None:
    """List your saved templates and those of your tenants."""
    found = client_of(choice).pages("saved_templates", 10_000)
    if as_json:
        output.as_json(found)
        return
    rows = [(p["name"], p["tenant"] or "–", "yes" if p["is_default"] else "", p["owner"]) for p in found]
    output.table(("NAME", "TENANT", "DEFAULT", "OWNER"), rows, "No saved templates. Save one on the page New job.")


def _submit_copy(
    client: Client,
    copy: dict[str, Any],
    tenant: str | None,
    *,
    name: str | None,
    queue: str | None,
    changes: Sequence[str],
    dry_run: bool,
    watch: bool,
) -> None:
    if copy["secrets"]:
        raise Failure(f"Enter its secrets again, on the page of the job: {', '.join(copy['secrets'])}.")
    changed = {key: value for key, value in (("name", name), ("queue", queue)) if value}
    try:
        document = apply_assignments({**copy["spec"], **changed}, changes)
    except Invalid as error:
        raise Failure(" ".join(problem.message for problem in error.problems)) from error
    answer: Any = (client.check if dry_run else client.submit)(document, tenant=tenant)
    _notes(answer["warnings"], ())
    if dry_run:
        output.as_json(answer["spec"])
    else:
        _go_on(client, answer["job"], watch=watch, quiet=False)


def _notes(warnings: Sequence[str], files: Sequence[str]) -> None:
    for warning in warnings:
        click.secho(f"Note: {warning}", fg="yellow", err=True)
    if files:
        click.echo(f"Uploaded files: {', '.join(files)}")


def _go_on(client: Client, job: dict[str, Any], *, watch: bool, quiet: bool) -> None:
    if not quiet:
        where = f"{client.server.url}/jobs/{job['uid']}/"
        click.echo(f"Submitted {job['name']} to queue {job['queue']} of {job['tenant']}: {where}")
    if watch:
        sys.exit(follow(client, job))
