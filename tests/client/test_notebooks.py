"""Cells and notebooks as jobs: the magics, the runner in the job, and what a session brings into its pod."""

import base64
import io
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import httpx2
import pytest

from hekla.client import notebook_runner, notebooks, texts
from hekla.client.client import Client
from hekla.client.magics import cell_magic, line_magic, load_ipython_extension
from hekla.domain.jobspec import JobSpec
from hekla.domain.phases import JobPhase
from hekla.workbench import pod_bundle
from hekla.workbench.pod_bundle import bundle

HOME = "0b1f6f5e-8d43-4e0e-9d1c-6f3c2b8a7d10"
TASK = {
    "name": "lab",
    "command": ["sleep", "1"],
    "environment": "torch",
    "env": {"A": "1"},
    "resources": {"cpu": "4", "nvidia.com/gpu": "1"},
    "volume_mounts": [{"name": "data", "mount_path": "/data"}],
}
VOLUMES = [{"name": "data", "claim": "data"}, {"name": "more", "claim": "more"}]
SESSION_JOB = {"name": "mine", "queue": "fast", "tasks": [{"name": "other"}, TASK], "volumes": VOLUMES}
POD = {"task": "main", "index": 0, "attempt": 1}


class Console:
    """Answers as the console does. `sent`: the submitted specs. `lines`: the log of each job."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.lines = [f"line {number}" for number in range(300)]
        self.interrupts = False
        self.languages: set[str] = set()

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.languages.add(request.headers.get("accept-language", ""))
        path = request.url.path.removeprefix("/api/v1/")
        if request.method == "POST" and path == "jobs":
            self.sent.append(json.loads(request.content))
            if self.sent[-1]["queue"] == "closed":
                return httpx2.Response(400, json={"detail": "The queue is closed."})
            return httpx2.Response(201, json={"job": self._job("pending"), "warnings": []})
        if path == f"jobs/{HOME}":
            return httpx2.Response(200, json={"spec": SESSION_JOB})
        if path.endswith("/log"):
            text = "\n".join(self.lines)
            return httpx2.Response(200, json={"text": text, "next_offset": len(text), "complete": True})
        if self.interrupts:
            raise KeyboardInterrupt
        return httpx2.Response(200, json=self._job("completed"))

    def _job(self, phase: str) -> dict[str, Any]:
        uid = "3d7c2c4e-6a40-4f0b-8f0c-0e6f3f4a9b1d"
        return {"uid": uid, "name": self.sent[-1]["name"], "phase": phase, "message": "", "pods": [POD]}


@pytest.fixture
def console(monkeypatch: pytest.MonkeyPatch) -> Console:
    found = Console()
    monkeypatch.setenv("HEKLA_SESSION_JOB", HOME)
    monkeypatch.setenv("HEKLA_SESSION_TASK", "lab")
    transport = httpx2.MockTransport(found)
    monkeypatch.setattr("hekla.client.magics.Client", lambda: Client("http://console", "t", transport=transport))
    return found


def test_cell_is_submitted_like_the_job_of_its_session_and_followed(
    console: Console, capsys: pytest.CaptureFixture[str]
) -> None:
    job = cell_magic("--name x --cpus 2 --gpus 0 --queue slow", "print(1)")
    (spec,) = console.sent
    (task,) = spec["tasks"]
    assert (spec["name"], spec["queue"], spec["files"]) == ("x", "slow", {"cell.py": "print(1)"})
    assert (task["environment"], task["env"], task["resources"]) == ("torch", {"A": "1"}, {"cpu": "2"})
    assert spec["volumes"] == VOLUMES[:1]
    written = capsys.readouterr().out.splitlines()
    assert written[:2] == [f"Submitted x: http://console/jobs/{job.uid if job else ''}/", "x: pending"]
    assert (written[2], written[-2], written[-1]) == ("line 0", "line 299", "x: completed")
    assert len(written) == 2 + 200 + 20 + 1
    assert job is not None
    assert (job.state, job.logs()[-1], job.wait().name) == ("completed", "line 299", "x")


def test_interrupt_detaches_and_problems_are_messages(console: Console, capsys: pytest.CaptureFixture[str]) -> None:
    console.interrupts = True
    job = cell_magic("--name x", "1")
    assert job is not None
    assert capsys.readouterr().out.splitlines()[-1] == "Detached. x goes on."
    assert cell_magic("--queue closed", "1") is None
    assert capsys.readouterr().out == "The queue is closed.\n"
    assert cell_magic("--nonsense", "1") is None
    assert "unrecognized arguments: --nonsense" in capsys.readouterr().out
    assert line_magic("absent.ipynb") is None
    assert "No such file" in capsys.readouterr().out


def test_magics_speak_the_language_of_the_person(
    console: Console, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEKLA_LANGUAGE", "zh-hans")
    console.lines = ["one line"]
    job = cell_magic("--name x", "1")
    assert job is not None
    assert capsys.readouterr().out.splitlines() == [f"已提交 x：{job.url}", "x: 等待中", "one line", "x: 已完成"]
    assert console.languages == {"zh-hans"}
    console.interrupts = True
    cell_magic("--name x", "1")
    assert capsys.readouterr().out.splitlines()[-1] == "已停止跟踪。x 继续运行。"
    line_magic("absent.ipynb")
    assert "无法读取 absent.ipynb：" in capsys.readouterr().out


def test_each_text_of_notebooks_has_a_translation() -> None:
    table, phases = set(texts._CHINESE), {phase.value for phase in JobPhase}
    client = Path(texts.__file__).parent
    code = "".join((client / name).read_text() for name in ("magics.py", "notebooks.py"))
    used = set(re.findall(r'translate\(\s*"([^"]+)"', code))
    button = (Path(pod_bundle.__file__).parent / "labextension/static/remoteEntry.js").read_text()
    used |= set(re.findall(r'translate\("([^"]+)"\)', button))
    fields = re.search(r"FIELDS = \[(.*?)\n  \];", button, re.DOTALL)
    assert fields is not None
    used |= {word for row in re.findall(r"\[(.*)\]", fields[1]) for word in json.loads(f"[{row}]")[1:]}
    assert used | phases == table
    for english, chinese in texts._CHINESE.items():
        assert re.findall(r"{\w+}", english) == re.findall(r"{\w+}", chinese)


def notebook(*cells: str) -> str:
    made = [{"cell_type": "code", "source": [cell], "outputs": [{"data": "old"}], "metadata": {}} for cell in cells]
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def test_notebook_is_submitted_without_its_outputs_and_runs(
    console: Console, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "My Study.ipynb"
    path.write_text(notebook("x = 6", "%matplotlib inline\n!ls\nprint(x * 7)", "%%hekla\nprint('in a job')"))
    assert line_magic(f"'{path}' --detach --name study") is not None
    files = console.sent[0]["files"]
    assert console.sent[0]["tasks"][0]["command"][-2:] == ["notebook_runner.py", "My Study.ipynb"]
    assert "old" not in files["My Study.ipynb"]
    JobSpec.parse({"name": "x", "tasks": [{"name": "main", "command": ["true"]}], "files": files})
    capsys.readouterr()
    notebook_runner.run_as_script(str(path))
    assert capsys.readouterr().out == "42\n"


def test_names_of_jobs_come_from_notebooks() -> None:
    assert notebooks._label("My Study (2)") == "my-study-2"
    assert notebooks._label("…") == "notebook"


def test_pod_gets_all_that_the_client_needs(tmp_path: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(base64.b64decode(bundle()))) as archive:
        archive.extractall(tmp_path)
    found = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert "share/jupyter/labextensions/hekla-submit/static/remoteEntry.js" in found
    assert "etc/jupyter/jupyter_server_config.d/hekla.json" in found
    code = "import hekla.client as c, hekla.client.magics, httpx2 as h; print(h.__file__, c.Client('https://x', 't'))"
    command = [sys.executable, "-S", "-c", code]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "python")}
    written = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    assert written.split()[0] == str(tmp_path / "libraries/httpx2/__init__.py")


def test_extension_registers_both_magics() -> None:
    class Shell:
        names: list[tuple[str, str]] = []

        def register_magic_function(self, func: object, magic_kind: str, magic_name: str) -> None:
            assert callable(func)
            self.names.append((magic_kind, magic_name))

    load_ipython_extension(Shell())
    assert Shell.names == [("cell", "hekla"), ("line", "hekla")]
