"""The magics `%%hekla` and `%hekla` of IPython. They are loaded in the notebooks of sessions.

    %%hekla --name train --gpus 1        submits the cell as a job, and follows it
    %hekla notebook.ipynb --gpus 1       submits a whole notebook

Each returns the job as an object. An interrupt ends the following, not the job.
"""

import argparse
import shlex
from typing import Any, Protocol

from hekla.client.client import Client
from hekla.client.errors import ClientError
from hekla.client.notebooks import Choices, SubmittedJob, submit_code, submit_notebook
from hekla.client.texts import translate


class Shell(Protocol):
    """The part of IPython's shell that is used here."""

    def register_magic_function(self, func: Any, magic_kind: str, magic_name: str) -> None:  # noqa: ANN401
        """Register a magic."""


class UsageProblem(Exception):
    """The line after the name of the magic is wrong."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:  # noqa: ANN401
        problem = translate("Check the options of {magic}: {message}", magic=self.prog, message=message)
        raise UsageProblem(f"{problem}\n{self.format_usage()}")


def load_ipython_extension(shell: Shell) -> None:
    """Register both magics."""
    shell.register_magic_function(cell_magic, "cell", "hekla")
    shell.register_magic_function(line_magic, "line", "hekla")


def cell_magic(line: str, cell: str) -> SubmittedJob | None:
    """`%%hekla [options]`: submit this cell as a job."""
    return _run(_parser("%%hekla"), line, cell)


def line_magic(line: str) -> SubmittedJob | None:
    """`%hekla NOTEBOOK [options]`: submit a notebook as a job."""
    parser = _parser("%hekla")
    parser.add_argument("notebook")
    return _run(parser, line, None)


def _parser(name: str) -> argparse.ArgumentParser:
    parser = _Parser(prog=name, add_help=False)
    for option in ("name", "queue", "image", "environment", "cpus", "memory", "gpus"):
        parser.add_argument(f"--{option}", default="")
    parser.add_argument("--detach", action="store_true")
    return parser


def _run(parser: argparse.ArgumentParser, line: str, cell: str | None) -> SubmittedJob | None:
    """Submit and follow. Problems are written, without a traceback of this code."""
    job: SubmittedJob | None = None
    try:
        values = vars(parser.parse_args(shlex.split(line)))
        detach, notebook = values.pop("detach"), values.pop("notebook", "")
        client, choices = Client(), Choices(**values)
        job = submit_code(client, cell, choices) if cell is not None else submit_notebook(client, notebook, choices)
        _write(translate("Submitted {name}: {url}", name=job.name, url=job.url))
        if not detach:
            job.follow(_write)
    except KeyboardInterrupt:
        _write(translate("Detached. {name} goes on.", name=job.name) if job else translate("Interrupted."))
    except (ClientError, UsageProblem, LookupError, OSError, ValueError) as error:
        _write(str(error))
    return job


def _write(line: str) -> None:
    print(line, flush=True)
