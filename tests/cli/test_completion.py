"""Shell completion: commands, options and names from the console."""

import subprocess
import sys

import pytest
from tests.cli.conftest import hekla

SHELLS = ("bash", "zsh", "fish")


def completions(*words: str, **env: str) -> set[str]:
    """The completions of the last word in bash, from the command itself."""
    line = " ".join(("hekla", *words))
    environment = {"_HEKLA_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words)), **env}
    code = "import sys; sys.argv[0] = 'hekla'; from hekla.cli.main import main; main()"
    answer = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    return {row.split(",", 1)[1] for row in answer.stdout.split()}


@pytest.mark.parametrize("shell", SHELLS)
def test_script_for_each_shell(shell: str) -> None:
    result = hekla("completion", shell)
    assert result.exit_code == 0
    assert "_HEKLA_COMPLETE" in result.output


def test_commands_are_completed() -> None:
    assert completions("qu") == {"queue", "quota"}
    assert completions("job", "s") == {
        "show",
        "submit",
        "show-evictions",
        "show-risk",
        "scale",
        "stalled",
        "set-priority",
        "set-notifications",
    }
    assert completions("bench", "re") == {"react", "reconcile"}


@pytest.mark.parametrize("world", ["simulated"], indirect=True)
def test_job_names_are_completed(console, manifest) -> None:
    for name in ("talk", "train"):
        console("job", "submit", manifest(name))
    environment = {"HEKLA_SERVER": console.url, "HEKLA_TOKEN": console.token}
    assert completions("job", "abort", "t", **environment) == {"talk", "train"}
    assert completions("job", "logs", "tr", **environment) == {"train"}
    assert completions("job", "abort", "t", **(environment | {"HEKLA_SERVER": "http://127.0.0.1:9"})) == set()
