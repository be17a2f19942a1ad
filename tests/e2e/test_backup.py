"""A backup of a running server, restored into a new server."""

import subprocess
import sys
import time
from pathlib import Path

import httpx2
import pytest
from tests.e2e.conftest import CHECKOUT, HeklaServer, environment

JOB = {"name": "kept", "tasks": [{"name": "main", "command": ["echo", "what it wrote"], "resources": {"cpu": "100m"}}]}


def rest(server: HeklaServer) -> httpx2.Client:
    token = (server.home / "cli-token").read_text().strip()
    return httpx2.Client(base_url=f"{server.url}/api/v1", headers={"Authorization": f"Bearer {token}"}, timeout=20)


def manage(*argv: str) -> None:
    command = [sys.executable, "manage.py", *argv]
    process = subprocess.run(command, cwd=CHECKOUT, env=environment(), capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stdout + process.stderr


def until_final(client: httpx2.Client, uid: str) -> dict[str, object]:
    deadline = time.monotonic() + 60
    while not (job := client.get(f"/jobs/{uid}").json())["is_final"]:
        assert time.monotonic() < deadline, job
        time.sleep(0.1)
    return dict(job)


@pytest.mark.thorough
def test_restored_console_has_jobs_logs_and_people(tmp_path: Path) -> None:
    first, backup = HeklaServer(tmp_path / "first"), str(tmp_path / "all.tar")
    try:
        with rest(first) as client:
            uid = client.post("/jobs", json=JOB).json()["job"]["uid"]
            job, log = until_final(client, uid), client.get(f"/jobs/{uid}/pods/main/0/log").text
            manage("backup", backup, "--data", str(first.home))
            assert client.get(f"/jobs/{uid}").is_success
    finally:
        first.stop()
    manage("restore", backup, "--data", str(tmp_path / "second"))
    (tmp_path / "second" / "cli-token").write_text((first.home / "cli-token").read_text())
    second = HeklaServer(tmp_path / "second")
    try:
        with rest(second) as client:
            assert client.get(f"/jobs/{uid}").json() == job
            assert "what it wrote" in log == client.get(f"/jobs/{uid}/pods/main/0/log").text
            uid = client.post("/jobs", json=JOB | {"name": "after"}).json()["job"]["uid"]
            assert until_final(client, uid)["phase"] == "completed"
    finally:
        second.stop()
