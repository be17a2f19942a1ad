"""Jobs on the command line, with a console that runs real processes."""

import json
import os
import re
import zipfile
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings

from hekla.apps.clusters import selectors as clusters
from hekla.apps.gallery import services as gallery
from hekla.apps.jobs.models import FileUpload, Job, Pod
from hekla.apps.notifications import services as notifications
from hekla.apps.notifications.selectors import job_choice as notifications_of
from hekla.apps.presets import services
from hekla.apps.usage.models import Sample
from hekla.cli import uploads
from hekla.client.errors import UnreachableError
from hekla.client.transport import Transport
from hekla.domain.jobspec import JobSpec
from hekla.lib import clock

pytestmark = pytest.mark.parametrize("world", ["local"], indirect=True)


def test_job_is_watched(console, manifest):
    result = console("job", "submit", manifest(), "--watch")
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    log_lines = [line.strip() for line in lines if " | " in line]
    assert log_lines == ["main-0 | hello", "main-0 | world"]
    assert "Submitted talk to queue default of lab" in lines[0]
    assert "completed" in lines[-1].lower()


def test_failed_job_has_an_exit_status(console, manifest):
    path = manifest(command="[sh, -c, 'echo oh no; exit 3']")
    path.write_text(path.read_text().replace("replicas: 1", "replicas: 1\n      maxRetry: 1"))
    result = console("job", "submit", path, "--watch")
    assert result.exit_code == 1
    assert "oh no" in result.output
    assert "3" in result.output.splitlines()[-1] or "Exit code 3" in result.output


def test_job_is_aborted_cloned_and_deleted(console, manifest):
    assert console("job", "submit", manifest(command="[sleep, '60']")).exit_code == 0
    assert console("job", "show", "talk").exit_code == 0
    assert "talk is" in console("job", "abort", "talk").output
    ended = console("job", "watch", "talk")
    assert ended.exit_code == 1
    [row] = json.loads(console("job", "list", "--json", "--phase", "aborted").output)
    assert (row["name"], row["owner"]) == ("talk", "alice")
    again = console("job", "clone", "talk", "--name", "again")
    assert "Submitted again" in again.output
    console("job", "abort", "again")
    console("job", "watch", "again")
    deleted = console("job", "delete", row["uid"])
    assert (deleted.exit_code, "Logs are kept until" in deleted.output) == (0, True)
    listed = console("job", "list").output
    assert "again" in listed
    assert "talk" not in listed
    assert [job["name"] for job in json.loads(console("job", "list", "--deleted", "--json").output)] == ["talk"]
    assert "history until" in console("job", "show", row["uid"]).output


def test_job_is_cloned_with_changes(console, manifest):
    console("job", "submit", manifest(), "--watch")
    options = (
        "--set",
        "tasks.main.command=echo $GREETING",
        "--set",
        "tasks.main.env.GREETING=hi",
        "--set",
        "priority=2",
    )
    spec = json.loads(console("job", "clone", "talk", *options, "--dry-run").output)
    assert (spec["name"], spec["priority"], spec["tasks"][0]["env"]) == ("talk-1", 2, {"GREETING": "hi"})
    again = console("job", "clone", "talk", "--set", "tasks.main.command=echo again", "--watch")
    assert (again.exit_code, "Submitted talk-1" in again.output, "main-0 | again" in again.output) == (0, True, True)
    wrong = console("job", "clone", "talk", "--set", "tasks.other.replicas=2")
    assert (wrong.exit_code, "Available: main" in wrong.output) == (1, True)


def test_part_of_a_job_is_restarted(console, manifest):
    console("job", "submit", manifest(command="[sleep, '60']"))
    assert "talk is" in console("job", "restart", "talk", "--task", "main").output
    assert "talk is" in console("job", "restart", "talk", "--task", "main", "--index", "0").output
    refused = console("job", "restart", "talk", "--task", "main", "--index", "7")
    assert (refused.exit_code, "Index 7 does not exist" in refused.output) == (1, True)
    assert console("job", "restart", "talk", "--index", "0").exit_code == 2
    console("job", "abort", "talk")
    console("job", "watch", "talk")


def test_logs_are_printed_and_followed(console, manifest):
    console("job", "submit", manifest(), "--watch")
    for command in (["job", "logs", "talk"], ["job", "logs", "talk", "--task", "main", "--index", "0", "--follow"]):
        assert console(*command).output == "hello\nworld\n"
    missing = console("job", "logs", "talk", "--task", "ps")
    assert (missing.exit_code, "It has: main-0" in missing.output) == (1, True)


def test_files_are_listed_and_downloaded(console, manifest, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    script = "mkdir out; head -c 700000 /dev/zero > out/model.bin; ln -s /etc/passwd link"
    console("job", "submit", manifest(command=f'[sh, -c, "{script}"]'), "--watch")
    whole = console("job", "files", "talk").output
    assert "out/" in whole
    assert "link (link, not followed)" in whole
    assert "683.6 KiB" in console("job", "files", "talk", "out/").output
    assert console("job", "download", "talk", "out/model.bin").output == "model.bin: 683.6 KiB\n"
    assert (tmp_path / "model.bin").read_bytes() == bytes(700_000)
    again = console("job", "download", "talk", "out/model.bin")
    assert (again.exit_code, "exists" in again.output) == (1, True)
    assert console("job", "download", "talk", "out/model.bin", "-o", "-").stdout_bytes == bytes(700_000)
    for path in ("link", "out", "../log", "missing"):
        refused = console("job", "download", "talk", path, "--force", "-o", "stolen")
        assert (refused.exit_code, "no such file" in refused.output) == (1, True)
    assert not list(tmp_path.glob("*stolen*"))
    assert console("file", "show", "talk", "out/model.bin").output.startswith("00000000  00 00 00 00 ")
    assert console("file", "show", "talk", "link").exit_code == 1
    assert "out/model.bin" in console("file", "find", "talk", "MODEL").output
    console("file", "archive", "talk", "-o", "talk.zip")
    with zipfile.ZipFile("talk.zip") as archive:
        assert archive.namelist() == ["out/model.bin", "NOT-COMPLETE.txt"]


def test_file_is_uploaded_and_an_interrupted_upload_continues(console, manifest, tmp_path, monkeypatch):
    console("job", "submit", manifest(command="[sh, -c, echo]"), "--watch")
    monkeypatch.setattr(uploads, "PIECE_BYTES", 300_000)
    (tmp_path / "data.bin").write_bytes(os.urandom(700_000))
    real, calls = Transport.write_piece, []

    def fail_once(transport, *arguments):
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt
        real(transport, *arguments)

    monkeypatch.setattr(Transport, "write_piece", fail_once)
    assert console("file", "put", "talk", tmp_path / "data.bin", "in/").exit_code == 1
    done = console("file", "put", "talk", tmp_path / "data.bin", "in/")
    assert "in/data.bin: 683.6 KiB, SHA-256 " in done.output
    assert [offset for _path, offset, _data in calls] == [0, 300_000, 300_000, 600_000]
    content = console("job", "download", "talk", "in/data.bin", "-o", "-").stdout_bytes
    assert content == (tmp_path / "data.bin").read_bytes()
    assert "name exists" in console("file", "put", "talk", tmp_path / "data.bin", "in/data.bin").output
    assert console("file", "put", "talk", tmp_path / "data.bin", "in/data.bin", "--force").exit_code == 0


def test_upload_whose_last_answer_was_lost_is_finished(console, manifest, tmp_path, monkeypatch):
    console("job", "submit", manifest(command="[sh, -c, echo]"), "--watch")
    (tmp_path / "data.bin").write_bytes(b"data")
    monkeypatch.setattr(uploads, "_PAUSE_SECONDS", 0.0)
    real, calls = Transport.write_piece, []

    def lose_the_first_answer(transport, path, offset, data):
        calls.append((offset, data))
        if len(calls) == 1:
            FileUpload.objects.update(received=4)  # all bytes are there, and the server was stopped before it finished
            draft = next(Path(settings.HEKLA_HOME).rglob(".hekla-upload-*"))
            draft.write_bytes(data)
            raise UnreachableError("lost")
        real(transport, path, offset, data)

    monkeypatch.setattr(Transport, "write_piece", lose_the_first_answer)
    done = console("file", "put", "talk", tmp_path / "data.bin")
    assert "data.bin: 4 B, SHA-256 " in done.output
    assert calls == [(0, b"data"), (4, b"")]


def test_file_is_edited_and_a_change_of_the_program_stays(console, manifest, tmp_path, monkeypatch):
    console("job", "submit", manifest(command="[sh, -c, echo one > a.txt]"), "--watch")
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\necho two >> "$1"\n')
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(editor))
    assert console("file", "edit", "talk", "a.txt").output.startswith("a.txt: saved, SHA-256 ")
    assert console("job", "download", "talk", "a.txt", "-o", "-").output == "one\ntwo\n"
    assert console("file", "edit", "talk", "b.txt").exit_code == 1
    assert "saved" in console("file", "edit", "talk", "b.txt", "--new").output
    assert "exists" in console("file", "edit", "talk", "b.txt", "--new").output
    stored = next(Path(settings.HEKLA_HOME).rglob("work/a.txt"))
    editor.write_text(f'#!/bin/sh\necho mine > "$1"; echo theirs > "{stored}"\n')
    refused = console("file", "edit", "talk", "a.txt")
    assert (refused.exit_code, "Nothing was replaced" in refused.output) == (1, True)
    mine = Path(re.search(r"Your version: (\S+)", refused.output)[1])
    assert (stored.read_text(), mine.read_text()) == ("theirs\n", "mine\n")
    monkeypatch.setenv("VISUAL", "true")
    assert console("file", "edit", "talk", "a.txt").output == "Not changed.\n"


def test_terminal_escapes_in_names_of_files_are_removed(console, manifest):
    command = r"""[sh, -c, 'touch "$(printf "\033]0;x\007red")"']"""
    console("job", "submit", manifest(command=command), "--watch")
    found = console("file", "find", "talk", "red").output
    assert "red" in found
    assert "\x07" not in found


def test_terminal_escapes_in_logs_are_removed(console, manifest):
    console("job", "submit", manifest(command=r"[printf, '\033[2J\033]0;owned\007plain\033[31m red\n']"), "--watch")
    assert console("job", "logs", "talk").output == "plain red\n"


def test_files_beside_the_manifest_are_uploaded(console, manifest, tmp_path):
    (tmp_path / "train.sh").write_text("cat data/words.txt")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "words.txt").write_text("from a file")
    extra = ", annotations: {hekla.io/files: data/words.txt}"
    result = console("job", "submit", manifest(command="[sh, train.sh]", extra=extra), "--watch")
    assert "Uploaded files: data/words.txt, train.sh" in result.output
    assert "from a file" in result.output


def test_ctrl_c_leaves_the_job_running(console, manifest, monkeypatch):
    from hekla.client import Client

    console("job", "submit", manifest(command="[sleep, '60']"))

    def interrupted(*_words, **_more):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        real = Client.get
        patch.setattr(Client, "get", lambda c, path, **q: interrupted() if "events" in path else real(c, path, **q))
        result = console("job", "watch", "talk")
    assert result.exit_code == 130
    assert "talk keeps running" in result.output
    assert json.loads(console("job", "show", "talk", "--json").output)["phase"] in {"pending", "running"}
    console("job", "abort", "talk")
    console("job", "watch", "talk")


def test_queues_nodes_and_whoami(console):
    assert "default" in console("queue", "list").output
    assert "cpu 4" in console("node", "list").output
    assert "alice at" in console("whoami").output


def test_dry_run_submits_nothing(console, manifest):
    assert "is valid" in console("job", "submit", manifest(), "--dry-run").output
    assert "No matching jobs" in console("job", "list").output


def test_bench_submit(console):
    figures = json.loads(
        console("bench", "submit", "--jobs", "2", "--warm-up", "0", "--seconds", "0.1", "--json").output
    )
    assert 0 < figures["events_ms_median"] <= figures["events_ms_max"]
    assert figures["events_ms_median"] < figures["wall_ms_max"]
    assert console("job", "list", "--json").output.strip() == "[]"


def test_bench_react(console):
    command = ("bench", "react", "--jobs", "1", "--warm-up", "0", "--seconds", "0.1")
    figures = json.loads(console(*command, "--json").output)
    # The reading that finds an exit may begin just before it; the exit is then reported as of that time.
    assert -100 < figures["action_ms_median"] <= figures["action_ms_max"]
    assert figures["action_ms_median"] < figures["running_ms_median"]
    assert console("job", "list", "--json").output.strip() == "[]"


def test_watch_survives_a_restart_of_the_console(console, manifest, monkeypatch):
    from hekla.client import Client, UnreachableError

    console("job", "submit", manifest())
    real, unreachable = Client.get, [True]

    def get(client, path, **query):
        if "events" in path and unreachable:
            unreachable.clear()
            raise UnreachableError("Cannot connect")
        return real(client, path, **query)

    monkeypatch.setattr(Client, "get", get)
    result = console("job", "watch", "talk")
    assert (result.exit_code, "waiting for it" in result.output) == (0, True)
    assert "main-0 | world" in result.output


@pytest.mark.parametrize("command", [["node", "list"], ["job", "watch", "talk"], ["job", "logs", "talk", "--follow"]])
def test_commands_wait_for_the_limit_of_requests(console, manifest, monkeypatch, settings, command):
    """The real refusal, with its Retry-After, in the middle of the command."""
    from hekla.client import transport

    console("job", "submit", manifest(), "--watch")
    waits = []

    def sleep(seconds):
        waits.append(seconds)
        settings.API_REQUESTS_A_MINUTE = 3000

    monkeypatch.setattr(transport, "_sleep", sleep)
    settings.API_REQUESTS_A_MINUTE = 0
    result = console(*command)
    assert (result.exit_code, len(waits)) == (0, 1), result.output
    assert 1 <= waits[0] <= 60
    assert "refuses more requests" in result.output


def test_job_is_scaled(console, manifest):
    console("job", "submit", manifest(command="[sleep, '60']"))
    grown = console("job", "scale", "talk", "main=2")
    assert (grown.exit_code, grown.output) == (0, "talk is to have: main 2.\n")
    assert json.loads(console("job", "show", "talk", "--json").output)["replicas"] == 2
    refused = console("job", "scale", "talk", "main=0")
    assert (refused.exit_code, "tasks.main.min_available: The task has 0 replicas" in refused.output) == (1, True)
    for options in (["main=x"], ["main"], []):
        assert console("job", "scale", "talk", *options).exit_code == 2
    assert console("job", "scale", "talk", "main=1", "--min", "main=1", "--min-all", "1", "--json").exit_code == 0
    console("job", "abort", "talk")
    console("job", "watch", "talk")


def test_pod_show_lists_attempts(console, manifest):
    path = manifest(command="[sh, -c, 'exit 137']")
    retry = "spec:\n  maxRetry: 1\n  policies: [{event: PodFailed, action: RestartJob}]"
    path.write_text(path.read_text().replace("spec:", retry, 1))
    console("job", "submit", path, "--watch")
    output = console("pod", "show", "talk").output
    assert output.count("main-0, attempt") == 2
    assert output.count("137, stopped by SIGKILL") == 2
    assert "Request more memory" in output
    assert "Own CPUs" not in output
    Pod.objects.filter(attempt=2).update(cpus="2-3")
    assert "Own CPUs  2-3" in console("pod", "show", "talk").output
    assert "OWN CPUS" in console("job", "show", "talk").output
    attempts = json.loads(console("pod", "show", "talk", "--task", "main", "--json").output)
    assert [attempt["attempt"] for attempt in attempts] == [1, 2]
    absent = console("pod", "show", "talk", "--index", "7")
    assert (absent.exit_code, "Unknown pod" in absent.output) == (1, True)


def test_pod_show_has_the_use_of_gpus(console, manifest):
    console("job", "submit", manifest(command="[echo, 'hello']"), "--watch")
    pod = Pod.objects.get()
    Sample.objects.filter(pod=pod).delete()
    for second, busy, memory in ((10, 860, 2), (20, 1000, 3)):
        fields = {"cpu_ms": 1500, "memory_bytes": 2**20, "gpu_thousandths": busy, "gpu_memory_bytes": memory * 2**20}
        Sample.objects.create(pod=pod, span_seconds=10, at=clock.now() + timedelta(seconds=second), **fields)
    lines = [line.strip() for line in console("pod", "show", "talk").output.splitlines()]
    assert lines[-2:] == [
        "Used      1.5 s of CPU, 1 MiB of memory at most", "0.93 GPUs busy on average, 3 MiB of GPU memory at most"
    ]  # fmt: skip


def test_logs_are_searched(console, manifest):
    script = "echo Ready; for n in 1 2 3; do echo step $n; done; printf '\\033[31mERROR at step 3\\n'"
    console("job", "submit", manifest(command=f"[sh, -c, {json.dumps(script)}]"), "--watch")
    assert console("job", "logs", "talk", "--search", "step").output.splitlines() == [
        "2: step 1", "3: step 2", "4: step 3", "5: ERROR at step 3",
    ]  # fmt: skip
    assert console("job", "logs", "talk", "-s", "error").output == ""
    assert console("job", "logs", "talk", "-s", "error", "-i").output == "5: ERROR at step 3\n"
    both = console("job", "logs", "talk", "--search", "x", "--follow")
    assert (both.exit_code, "cannot be combined with --follow" in both.output) == (1, True)


def test_preset_is_submitted(console):
    spec = JobSpec.parse({"name": "usual", "tasks": [{"name": "main", "command": ["echo", "hello"]}]})
    services.save(name="my usual", spec=spec, user=console.world.alice, tenant=None, now=clock.now())
    assert "my usual" in console("saved-template", "list").output
    result = console("saved-template", "submit", "my usual", "--set", "tasks.main.command=echo other", "--watch")
    assert (result.exit_code, "Submitted usual-1" in result.output, "main-0 | other" in result.output) == (
        0,
        True,
        True,
    )
    missing = console("saved-template", "submit", "nothing")
    assert (missing.exit_code, "hekla saved-template list" in missing.output) == (1, True)


def test_explain_lists_pending_reasons(console, manifest):
    console("job", "submit", manifest(), "--watch")
    output = console("job", "explain", "talk").output
    assert "DURATION" in output
    assert "Now: Pending for " in output
    assert json.loads(console("job", "explain", "talk", "--json").output)["cells"][0]["begin"]
    assert "No evictions" in console("job", "show-evictions", "talk").output


def test_priority_is_changed(console, manifest):
    console("job", "submit", manifest(command="[sleep, '60']"))
    assert console("job", "set-priority", "talk", "-5").output == "talk has priority -5.\n"
    console("job", "abort", "talk")
    console("job", "watch", "talk")


def test_gallery_template_is_submitted(console):
    spec = JobSpec.parse({"name": "usual", "tasks": [{"name": "main", "command": ["true"], "env": {"LR": "1"}}]})
    fields = [{"place": "tasks.main.env.LR", "most": "2"}]
    card = {"title": "Ours", "description": "", "spec": spec, "fields": fields, "tenant": console.world.tenant}
    gallery.publish(**card, user=console.world.alice, now=clock.now())
    assert "Ours" in console("gallery", "list").output
    assert "to 2" in console("gallery", "show", "Ours").output
    assert (
        "Submitted mine"
        in console("gallery", "submit", "Ours", "--name", "mine", "--set", "tasks.main.env.LR=2").output
    )
    refused = console("gallery", "submit", "Ours", "--name", "more", "--set", "tasks.main.env.LR=3")
    assert (refused.exit_code, "at most 2" in refused.output) == (1, True)


def test_show_says_how_tasks_are_scaled(console, manifest, monkeypatch):
    monkeypatch.setattr(clusters, "sizes", lambda _cluster: [])  # no node has GPUs; the job waits
    path = manifest()
    annotations = "{annotations: {hekla.io/autoscaling: 'max-replicas=3,gpu-utilization=70'}}"
    text = path.read_text().replace("template:", f"template:\n        metadata: {annotations}")
    path.write_text(text.replace("cpu: 100m", "nvidia.com/gpu: 1"))
    assert console("job", "submit", path).exit_code == 0
    output = console("job", "show", "talk").output
    assert "Scaling    main: 1 to 3. No utilization was measured in the last minute" in output
    changed = console("job", "scale", "talk", "--target", "main=80", "--max", "main=5")
    assert changed.output == "talk is to have: main 1 (at most 5, GPU target 80%).\n"
    assert console("job", "scale", "talk", "--target", "main=80", "--no-autoscaling", "main").exit_code == 2
    assert console("job", "scale", "talk", "--no-autoscaling", "main").output == "talk is to have: main 1.\n"


def test_notification_preferences_and_list(console, manifest):
    notifications.follow(now=clock.now())
    console("job", "submit", manifest(command="[sleep, '60']"))
    assert (
        "Notifications for talk: failed, waits. Channels: page."
        in console("job", "set-notifications", "talk", "--on", "failed", "--on", "waits").output
    )
    assert "uses your default notification settings" in console("job", "set-notifications", "talk", "--default").output
    refused = console("job", "set-notifications", "talk", "--on", "failed", "--by", "webhook")
    assert (refused.exit_code, "Enter a webhook URL" in refused.output) == (1, True)
    assert console("notification", "list").output == "No notifications.\n"
    assert "has no reclaim" in console("job", "show-risk", "talk").output
    console("job", "abort", "talk")
    console("job", "watch", "talk")
    notifications.follow(now=clock.now())
    assert "talk: Aborted." in console("notification", "list", "--read").output
    assert console("notification", "list", "--unread").output == "No notifications.\n"


def test_submission_chooses_notifications(console, manifest):
    options = ("--notify", "failed", "--notify", "waits", "--notify-after", "5", "--notify-by", "page")
    assert console("job", "submit", manifest(), *options).exit_code == 0
    choice = notifications_of(console.world.alice, Job.objects.get())
    assert (choice.moments, choice.channels, choice.long_wait_minutes) == (["failed", "waits"], ["page"], 5)


def test_groups_and_bulk_actions(console, manifest):
    for name in ("one", "two", "three"):
        assert console("job", "submit", manifest(command="[sleep, '60']"), "--name", name).exit_code == 0
    [group] = json.loads(console("job", "list", "--group-by", "queue", "--mine", "--json").output)
    assert (group["name"], group["jobs"]) == ("default", 3)
    preview = console("job", "bulk", "priority", "--search", "t", "--priority", "7", "--dry-run")
    assert ("three" in preview.output, "one" in preview.output) == (True, False)
    assert set(Job.objects.values_list("priority", flat=True)) == {0}
    console("job", "bulk", "priority", "--search", "t", "--priority", "7", input="n\n")
    assert set(Job.objects.values_list("priority", flat=True)) == {0}
    console("job", "bulk", "priority", "--search", "t", "--priority", "7", "--yes")
    assert set(Job.objects.filter(priority=7).values_list("name", flat=True)) == {"two", "three"}
    refused = console("job", "bulk", "delete", "one", "two", "--yes")
    assert (refused.exit_code, Job.objects.filter(deleted_at=None).count()) == (1, 3)
    assert console("job", "bulk", "abort", "--yes").exit_code == 1
    for careless in (("--owner", ""), ("--search", " "), ("--phase", "")):
        refused = console("job", "bulk", "abort", *careless, "--yes")
        assert (refused.exit_code, "Enter a value" in refused.output) == (1, True)
        assert console("job", "list", *careless).exit_code == 1
    assert console("job", "abort", "").exit_code == 1
    assert set(Job.objects.values_list("phase", flat=True)) <= {"pending", "running"}
    done = console("job", "bulk", "abort", "--mine", input="y\n")
    assert done.output.count("done") == 3
