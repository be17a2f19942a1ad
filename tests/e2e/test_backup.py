"""A console is backed up while it works, and another one begins where it was."""

import subprocess
import sys
import time
from pathlib import Path

import httpx2
from tests.e2e.conftest import CHECKOUT, Running, environment

JOB = {"name": "kept", "tasks": [{"name": "main", "command": ["echo", "what it wrote"], "resources": {"cpu": "100m"}}]}


def rest(console: Running) -> httpx2.Client:
    token = (console.home / "cli-token").read_text().strip()
    return httpx2.Client(base_url=f"{console.url}/api/v1", headers={"Authorization": f"Bearer {token}"}, timeout=20)


def manage(*argv: str) -> None:
    command = [sys.executable, "manage.py", *argv]
    done = subprocess.run(command, cwd=CHECKOUT, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def until_over(client: httpx2.Client, uid: str) -> dict[str, object]:
    give_up_at = time.monotonic() + 60
    while not (job := client.get(f"/jobs/{uid}").json())["is_final"]:
        assert time.monotonic() < give_up_at, job
        time.sleep(0.1)
    return dict(job)


def test_a_console_is_brought_back_with_its_jobs_their_logs_and_its_people(tmp_path: Path) -> None:
    first, backup = Running(tmp_path / "first"), str(tmp_path / "all.tar")
    try:
        with rest(first) as client:
            uid = client.post("/jobs", json=JOB).json()["job"]["uid"]
            job, log = until_over(client, uid), client.get(f"/jobs/{uid}/pods/main/0/log").text
            manage("backup", backup, "--data", str(first.home))
            assert client.get(f"/jobs/{uid}").is_success
    finally:
        first.stop()
    manage("restore", backup, "--data", str(tmp_path / "second"))
    (tmp_path / "second" / "cli-token").write_text((first.home / "cli-token").read_text())
    second = Running(tmp_path / "second")
    try:
        with rest(second) as client:
            assert client.get(f"/jobs/{uid}").json() == job
            assert "what it wrote" in log == client.get(f"/jobs/{uid}/pods/main/0/log").text
            again = client.post("/jobs", json=JOB | {"name": "after"}).json()["job"]["uid"]
            assert until_over(client, again)["phase"] == "completed"
    finally:
        second.stop()
