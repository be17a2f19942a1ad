"""What the shell is told to complete: the words of the command, and names that the console knows."""

import subprocess
import sys

import pytest
from tests.cli.conftest import hekla

SHELLS = ("bash", "zsh", "fish")


def completed(*words: str, **env: str) -> set[str]:
    """What bash is offered for the last word, by the command itself."""
    line = " ".join(("hekla", *words))
    ask = {"_HEKLA_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words)), **env}
    code = "import sys; sys.argv[0] = 'hekla'; from hekla.cli.main import main; main()"
    answer = subprocess.run([sys.executable, "-c", code], env=ask, capture_output=True, text=True, check=False)
    return {row.split(",", 1)[1] for row in answer.stdout.split()}


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_gets_its_script(shell: str) -> None:
    result = hekla("completion", shell)
    assert result.exit_code == 0
    assert "_HEKLA_COMPLETE" in result.output


def test_words_are_completed() -> None:
    assert completed("qu") == {"queue", "quota"}
    assert completed("job", "s") == {
        "show",
        "submit",
        "show-evictions",
        "show-risk",
        "scale",
        "set-priority",
        "set-notifications",
    }
    assert completed("bench", "re") == {"react"}


@pytest.mark.parametrize("world", ["simulated"], indirect=True)
def test_names_of_jobs_are_completed(console, manifest) -> None:
    for name in ("talk", "train"):
        console("job", "submit", manifest(name))
    where = {"HEKLA_SERVER": console.url, "HEKLA_TOKEN": console.token}
    assert completed("job", "abort", "t", **where) == {"talk", "train"}
    assert completed("job", "logs", "tr", **where) == {"train"}
    assert completed("job", "abort", "t", **(where | {"HEKLA_SERVER": "http://127.0.0.1:9"})) == set()
