"""The files that pods wrote."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from hekla.cli import output
from hekla.cli.client import Client, Failure, client_of
from hekla.cli.completion import JOB
from hekla.cli.saving import save
from hekla.cli.servers import ServerOptions
from hekla.client.documents import JobDetail
from hekla.lib.text import strip_control_codes

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_STEP = 1024
of_task = click.option("--task", help="Only this task. Required if the job has several.")
of_index = click.option("--index", type=click.IntRange(0), help="Replica of the task, counted from 0.")
of_attempt = click.option("--attempt", type=click.IntRange(0), help="Attempt. Default: the last.")


@click.command()
@click.argument("job", type=JOB)
@click.argument("path", default="")
@of_task
@of_index
@of_attempt
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def list_files(
    choice: ServerOptions,
    job: str,
    path: str,
    task: str | None,
    index: int | None,
    attempt: int | None,
    as_json: bool,
) -> None:
    """List the files that a pod of JOB (a name or uid) wrote: the folder PATH below its working folder."""
    client = client_of(choice)
    where = pod_path(client.job(job), task, index)
    found = client.get(f"{where}/files", path=path.strip("/"), attempt=attempt)
    if as_json:
        output.as_json(found)
        return
    rows = [(_name(entry), _size(entry), output.moment(entry["changed_at"])) for entry in found["entries"]]
    output.table(("NAME", "SIZE", "CHANGED"), rows, "This folder is empty.")
    if not found["complete"]:
        click.echo("The folder has more entries.")


@click.command()
@click.argument("job", type=JOB)
@click.argument("path")
@of_task
@of_index
@of_attempt
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def show(
    choice: ServerOptions,
    job: str,
    path: str,
    task: str | None,
    index: int | None,
    attempt: int | None,
    as_json: bool,
) -> None:
    """Show the beginning of the file PATH that a pod of JOB (a name or uid) wrote: text, a table, or bytes."""
    client = client_of(choice)
    found = client.get(f"{pod_path(client.job(job), task, index)}/file/preview", path=path.strip("/"), attempt=attempt)
    if as_json:
        output.as_json(found)
        return
    for line in _preview_lines(found):
        click.echo(line)
    if not found["complete"]:
        click.echo("The file has more. Download it: hekla job download", err=True)


@click.command()
@click.argument("job", type=JOB)
@click.argument("path")
@click.option("--output", "-o", "target", metavar="FILE", help="Where to save it; -: standard output.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@of_task
@of_index
@of_attempt
@click.pass_obj
def download(
    choice: ServerOptions,
    job: str,
    path: str,
    target: str | None,
    force: bool,
    task: str | None,
    index: int | None,
    attempt: int | None,
) -> None:
    """Download the file PATH that a pod of JOB (a name or uid) wrote, to the current folder."""
    client, wanted = client_of(choice), path.strip("/")
    name = target or wanted.rpartition("/")[2] or "file"
    where = f"{pod_path(client.job(job), task, index)}/file"
    _download(client, where, wanted, attempt, name, is_forced=force)


@click.command()
@click.argument("job", type=JOB)
@click.argument("text")
@click.argument("path", default="")
@of_task
@of_index
@of_attempt
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def find(
    choice: ServerOptions,
    job: str,
    text: str,
    path: str,
    task: str | None,
    index: int | None,
    attempt: int | None,
    as_json: bool,
) -> None:
    """Find files whose name contains TEXT below the folder PATH of a pod of JOB (a name or uid)."""
    client = client_of(choice)
    where = f"{pod_path(client.job(job), task, index)}/files/search"
    found = client.get(where, q=text, path=path.strip("/"), attempt=attempt)
    if as_json:
        output.as_json(found)
        return
    rows = [(_place(each), _size(each), output.moment(each["changed_at"])) for each in found["entries"]]
    output.table(("PATH", "SIZE", "CHANGED"), rows, "No file has such a name.")
    if not found["complete"]:
        click.echo("There may be more: the search has ended at its limits.", err=True)


@click.command()
@click.argument("job", type=JOB)
@click.argument("path", default="")
@click.option("--output", "-o", "target", metavar="FILE", help="Where to save it; -: standard output.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@of_task
@of_index
@of_attempt
@click.pass_obj
def archive(
    choice: ServerOptions,
    job: str,
    path: str,
    target: str | None,
    force: bool,
    task: str | None,
    index: int | None,
    attempt: int | None,
) -> None:
    """Download the folder PATH of a pod of JOB (a name or uid) as a zip archive, to the current folder."""
    client, wanted = client_of(choice), path.strip("/")
    found = client.job(job)
    name = target or f"{wanted.rpartition('/')[2] or found['name']}.zip"
    _download(client, f"{pod_path(found, task, index)}/archive", wanted, attempt, name, is_forced=force)


def _download(client: Client, where: str, path: str, attempt: int | None, name: str, *, is_forced: bool) -> None:
    """Save what this address has for the path, or print it if the name is -. Raises Failure if the file exists."""
    file = Path(name)
    if name != "-" and file.exists() and not is_forced:
        raise Failure(f"{file} exists. Choose another with --output, or replace it with --force.")
    chunks = client.read_bytes(where, path=path, **({} if attempt is None else {"attempt": attempt}))
    if name == "-":
        for chunk in chunks:
            click.echo(chunk, nl=False)
    else:
        click.echo(f"{file}: {human_size(save(chunks, file))}")


def _preview_lines(preview: Mapping[str, Any]) -> Iterator[str]:
    """What a terminal shows of a preview."""
    yield from preview["lines"]
    yield from ("\t".join(row) for row in preview["rows"])
    for cell in preview["cells"]:
        yield f"[{cell['kind']}]"
        yield cell["source"]
        yield from (each["text"] or f"[{each['media_type']}]" for each in cell["outputs"])
    yield from preview["hexdump"]
    if preview["kind"] == "image":
        yield f"{preview['media_type']}, {human_size(preview['size_bytes'])}"


def pod_path(job: JobDetail, task: str | None, index: int | None) -> str:
    """The address of the pod that the options select. Raises Failure unless it is one."""
    pods = [pod for pod in job["pods"] if task in (None, pod["task"]) and index in (None, pod["index"])]
    if len(pods) != 1:
        names = ", ".join(f"{pod['task']}-{pod['index']}" for pod in job["pods"][:10])
        raise Failure(
            f"Name one pod of {job['name']} with --task and --index. It has: {names}."
            if names
            else f"{job['name']} has no pods yet. Pending reason: hekla job show {job['name']}"
        )
    return f"jobs/{job['uid']}/pods/{pods[0]['task']}/{pods[0]['index']}"


def _name(entry: Mapping[str, Any]) -> str:
    marks = {"folder": "/", "link": " (link, not followed)", "other": " (no file)"}
    return f"{entry['name']}{marks.get(entry['kind'], '')}"


def _place(entry: Mapping[str, Any]) -> str:
    """The path of an entry. Its pod chose the names in it."""
    return strip_control_codes(entry["path"] or entry["name"])


def _size(entry: Mapping[str, Any]) -> str:
    return human_size(entry["size_bytes"]) if entry["kind"] == "file" else "–"


def human_size(size: float) -> str:
    for unit in _UNITS[:-1]:
        if size < _STEP:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= _STEP
    return f"{size:.1f} {_UNITS[-1]}"
