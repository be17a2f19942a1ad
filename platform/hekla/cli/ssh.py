"""SSH to pods, by the `ssh` of this machine."""

import os
import re
import shutil

import click

from hekla.cli import ssh_files
from hekla.cli.client import Failure
from hekla.cli.completion import JOB
from hekla.cli.servers import ServerOptions

_NAME = re.compile(r"[A-Za-z0-9][-A-Za-z0-9]*")


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("job", type=JOB)
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option("--pod", metavar="TASK-INDEX", help="The pod, for example worker-1. Required if several run.")
@click.option("--forward", "-L", "forwards", multiple=True, metavar="PORT:localhost:PORT", help="As `ssh -L`.")
@click.option("--terminal", "-t", "terminal", is_flag=True, help="Run COMMAND in a terminal.")
@click.option("--no-command", "-N", "no_command", is_flag=True, help="Only forward ports.")
@click.pass_obj
def ssh(
    choice: ServerOptions,
    job: str,
    command: tuple[str, ...],
    pod: str | None,
    forwards: tuple[str, ...],
    terminal: bool,
    no_command: bool,
) -> None:
    """Open a shell in the running pod of JOB (a name or uid), or run COMMAND in it."""
    if not all(_NAME.fullmatch(name) for name in (job, *([pod] if pod else []))):
        raise Failure(f"“{job}{f'.{pod}' if pod else ''}” is no name of a job and its pod.")
    program = shutil.which("ssh")
    if program is None:
        raise Failure("This machine has no `ssh`. Install OpenSSH.")
    words = ["-F", str(ssh_files.write_config(choice, is_included=False))]
    for forward in forwards:
        words += ["-L", forward]
    words += ["-t"] if terminal else []
    words += ["-N"] if no_command else []
    host = f"{job}.{pod}{ssh_files.SUFFIX}" if pod else f"{job}{ssh_files.SUFFIX}"
    if choice.token:
        os.environ["HEKLA_TOKEN"] = choice.token  # for `ssh-proxy`; a command line is no place for it
    os.execv(program, ["ssh", *words, "--", host, *command])  # noqa: S606


@click.command()
@click.option("--install", is_flag=True, help="Add the line to ~/.ssh/config.")
@click.pass_obj
def ssh_config(choice: ServerOptions, install: bool) -> None:
    """Write settings for `ssh`, so that `ssh JOB.hekla`, scp, rsync and editors reach pods."""
    line, own, is_there = ssh_files.include(ssh_files.write_config(choice, is_included=True))
    if is_there:
        click.echo(f"{own} includes the settings already. Connect with: ssh JOB.hekla")
    elif install:
        ssh_files.install(line, own)
        click.echo(f"{own} now includes the settings. Connect with: ssh JOB.hekla")
    else:
        click.echo(f"Add this line at the begin of {own}, or use --install:", err=True)
        click.echo(line)
