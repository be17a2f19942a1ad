"""The example in the help and the README runs."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Console, console, world

from hekla.lib.checkout import CHECKOUT

__all__ = ["console", "world"]

DOCUMENTS = [CHECKOUT / "README.md", *sorted((CHECKOUT / "platform" / "help").rglob("submitting.md"))]
EXAMPLE = re.compile(r"^    from hekla\.client import Client\n(?:    .*\n|\n(?=    ))+", re.MULTILINE)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(CHECKOUT)))
@pytest.mark.parametrize("world", ["local"], indirect=True)
def test_example_runs(
    console: Console, document: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HEKLA_SERVER", console.url)
    monkeypatch.setenv("HEKLA_TOKEN", console.token)
    [example] = EXAMPLE.findall(document.read_text(encoding="utf-8"))
    exec(compile(re.sub(r"^    ", "", example, flags=re.MULTILINE), document.name, "exec"), {})  # noqa: S102
    assert capsys.readouterr().out == "completed\nhello\n"


def test_client_package_is_self_contained(tmp_path: Path) -> None:
    shutil.copytree(CHECKOUT / "platform" / "hekla" / "client", tmp_path / "hekla" / "client")
    code = "import sys; from hekla.client import Client; Client('http://127.0.0.1:9', 'x')\n"
    code += "print(sorted(name for name in sys.modules if name.startswith(('hekla.', 'django', 'pydantic'))))"
    command = [sys.executable, "-P", "-c", code]
    result = subprocess.run(command, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=True)
    parts = ("client", "credentials", "documents", "errors", "logs", "texts", "transport")
    assert result.stdout.strip() == str(["hekla.client", *(f"hekla.client.{part}" for part in parts)])
