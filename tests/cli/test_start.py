"""A command starts quickly because it imports only what it needs."""

import subprocess
import sys

import click
import pytest
from tests.cli.conftest import hekla

from hekla.cli import main

HEAVY = ("django", "httpx2", "numpy", "pydantic", "celery", "yaml")


def test_help_loads_nothing_heavy():
    code = f"import sys, hekla.cli.main as m; print([n for n in {HEAVY} if n in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "words", ["login", "job submit", "job list", "job watch", "job logs", "job abort", "queue list", "node list"]
)
def test_commands_do_not_import_django(words):
    find = "command = m.hekla\nfor word in sys.argv[1:]: command = command.get_command(None, word)"
    code = f"import sys, hekla.cli.main as m\n{find}\nprint('django' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code, *words.split()], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"


def all_commands() -> list[list[str]]:
    """Every noun, and every command."""
    context = click.Context(main.hekla)
    found = []
    for noun in main.hekla.list_commands(context):
        group = main.hekla.get_command(context, noun)
        verbs = group.list_commands(context) if isinstance(group, click.Group) else []
        found += [[noun], *([noun, verb] for verb in verbs)]
    return found


@pytest.mark.parametrize("words", all_commands(), ids=" ".join)
def test_every_command_has_help(words):
    result = hekla(*words, "--help")
    assert result.exit_code == 0
    assert " ".join(words) in result.output


@pytest.mark.parametrize(
    "words", [["nothing"], ["bench", "nothing"], ["job", "show"], ["jobs"], ["job", "list", "--limit", "0"]]
)
def test_unknown_commands_are_usage_errors(words):
    assert hekla(*words).exit_code == 2
