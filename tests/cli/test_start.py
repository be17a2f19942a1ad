"""The command starts quickly because it loads only what its word needs."""

import subprocess
import sys

import pytest
from tests.cli.conftest import hekla

from hekla.cli import main

HEAVY = ("django", "httpx2", "numpy", "pydantic", "celery", "yaml")


def test_help_loads_nothing_heavy():
    code = f"import sys, hekla.cli.main as m; print([n for n in {HEAVY} if n in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


@pytest.mark.parametrize("word", ["login", "submit", "jobs", "job", "watch", "logs", "abort", "queues", "nodes"])
def test_what_a_word_needs_does_not_include_django(word):
    code = f"import sys, hekla.cli.main as m; m.hekla.get_command(None, {word!r}); print('django' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "False"


@pytest.mark.parametrize("word", sorted(main.hekla.words))
def test_every_word_explains_itself(word):
    result = hekla(word, "--help")
    assert result.exit_code == 0
    assert word in result.output


@pytest.mark.parametrize("words", [["nothing"], ["bench", "nothing"], ["job"], ["jobs", "--limit", "0"]])
def test_wrong_words_are_usage_errors(words):
    assert hekla(*words).exit_code == 2
