"""The history of a debug job, where pods of a machine without isolation share its folder for temporary files."""

import subprocess
from pathlib import Path

from tests.apps.conftest import People

from hekla.apps.jobs import debug_spec
from hekla.apps.jobs.models import Pod
from hekla.lib import clock


def test_each_debug_job_has_a_history_of_its_own(people: People) -> None:
    facts = {"task": "main", "index": 0, "attempt": 1, "version": 1, "slot": 1, "created_at": clock.now()}
    pod = Pod.objects.create(job=people.submit("train"), address="127.0.0.1", phase="failed", **facts)
    specs = [debug_spec.debug_spec(pod.job, pod, "train-debug") for _again in range(2)]
    assert len({spec.tasks[0].env["HISTFILE"] for spec in specs}) == 2


def test_history_is_never_written_into_a_file_of_others(tmp_path: Path) -> None:
    others, link = tmp_path / "others", tmp_path / "history"
    others.write_text("theirs")
    link.symlink_to(others)
    own = tmp_path / "own"
    for history in (link, own):
        environment = {"HISTFILE": str(history), "HEKLA_FAILED_COMMAND": "train --token x", "PATH": "/usr/bin:/bin"}
        command = ["sh", "-c", debug_spec._WAIT]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, start_new_session=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline().startswith(b"Open a terminal")
            process.terminate()
    assert (others.read_text(), own.read_text(), own.stat().st_mode & 0o777) == ("theirs", "train --token x\n", 0o600)
