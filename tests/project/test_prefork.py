"""Processes forked from a preloaded parent behave like newly started processes."""

import json
import os
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hekla.launcher.up.prefork import Launcher
from hekla.launcher.up.titles import set_title

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="copies are made on Linux only")

PARENT = """
import fcntl, json, os, signal, sys, time
from hekla.launcher.up import preload
from hekla.launcher.up.prefork import Launcher

preload.load_console = lambda: __import__("json")  # these tests do not need Django, which takes seconds
launcher, env = Launcher(), {**os.environ, "SHARED": "yes"}
launcher.load(env)
signal.signal(signal.SIGTERM, lambda *_: print("the parent's own handler", flush=True))
lock = open("lock", "w")
fcntl.flock(lock, fcntl.LOCK_EX)
reader, writer = os.pipe()
copy = launcher.start("tester", ["copied", *sys.argv[1:]], env, writer)
os.close(writer)
print(copy.pid, flush=True)
with os.fdopen(reader, encoding="utf-8") as stream:
    output = stream.read()
while copy.poll() is None:
    time.sleep(0.01)
print(json.dumps({"code": copy.returncode, "output": output}), flush=True)
"""


class Fork:
    """A preloaded parent and its one fork, which runs the module `copied`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "parent.py").write_text(PARENT)

    def start(self, body: str, *arguments: str) -> "subprocess.Popen[str]":
        (self.folder / "copied.py").write_text(f"import os, sys, time\n{body}\n")
        env = {**os.environ, "PYTHONPATH": f"{Path('platform').resolve()}:{self.folder}"}
        argv = [sys.executable, "parent.py", *arguments]
        return subprocess.Popen(argv, cwd=self.folder, env=env, stdout=subprocess.PIPE, text=True)

    def run(self, body: str, *arguments: str) -> dict[str, object]:
        output, _ = self.start(body, *arguments).communicate(timeout=60)
        return dict(json.loads(output.splitlines()[-1]))


@pytest.fixture
def fork(tmp_path: Path) -> Fork:
    return Fork(tmp_path)


def test_fork_runs_a_module_with_its_arguments_environment_and_output(fork: Fork) -> None:
    body = "print(__name__, sys.argv[1:], os.environ['SHARED'])\nprint('数', file=sys.stderr)"
    output = fork.run(body, "--port", "1")["output"]
    assert output == "__main__ ['--port', '1'] yes\n数\n"


@pytest.mark.parametrize(
    ("body", "code", "output"),
    [
        ("pass", 0, ""),
        ("sys.exit(3)", 3, ""),
        ("sys.exit('no such thing')", 1, "no such thing\n"),
        ("raise KeyboardInterrupt", 130, ""),
        ("os.kill(os.getpid(), 15)", -15, ""),
    ],
)
def test_fork_has_the_exit_code_of_a_new_process(fork: Fork, body: str, code: int, output: str) -> None:
    assert fork.run(body) == {"code": code, "output": output}


def test_exception_is_printed(fork: Fork) -> None:
    found = fork.run("raise RuntimeError('no disk')")
    assert found["code"] == 1
    assert str(found["output"]).endswith("RuntimeError: no disk\n")


def test_fork_waits_for_its_threads(fork: Fork) -> None:
    body = "import threading\nthreading.Timer(0.2, lambda: print('late')).start()"
    assert fork.run(body)["output"] == "late\n"


def test_files_of_the_parent_are_closed_in_the_fork(fork: Fork) -> None:
    body = (
        "paths = {os.readlink(f'/proc/self/fd/{name}') for name in os.listdir('/proc/self/fd')"
        " if os.path.exists(f'/proc/self/fd/{name}')}\n"
        "print([path for path in paths if path.endswith('lock')], os.getsid(0) == os.getpid())"
    )
    assert fork.run(body)["output"] == "[] True\n"


def test_process_list_shows_the_name(fork: Fork) -> None:
    body = "print(open('/proc/self/cmdline').read().strip('\\0'), open('/proc/self/comm').read().strip())"
    assert fork.run(body)["output"] == "hekla: tester hekla: tester\n"


def test_fork_does_not_outlive_a_killed_parent(fork: Fork) -> None:
    parent = fork.start("print('up', flush=True)\ntime.sleep(100)")
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    descriptor = os.pidfd_open(pid)
    parent.kill()
    parent.communicate()
    assert _has_ended(descriptor)


def _has_ended(descriptor: int) -> bool:
    try:
        return bool(select.select([descriptor], [], [], 20)[0])
    finally:
        os.close(descriptor)


def test_fork_has_default_signal_handlers(fork: Fork) -> None:
    body = "import signal\nprint(signal.getsignal(15), signal.getsignal(2) is signal.default_int_handler)"
    assert fork.run(body)["output"] == "0 True\n"


def _spawn(launcher: Launcher, env: dict[str, str]) -> str:
    reader, writer = os.pipe()
    process = launcher.start("tester", ["platform"], env, writer)
    os.close(writer)
    with os.fdopen(reader) as stream:
        output = stream.read()
    assert isinstance(process, subprocess.Popen)
    assert process.wait(60) == 0
    return output


def test_process_is_spawned_without_a_preload() -> None:
    assert "Linux" in _spawn(Launcher(), dict(os.environ))


def test_process_with_another_environment_is_spawned() -> None:
    launcher = Launcher()
    launcher._loaded_with = dict(os.environ)
    assert "Linux" in _spawn(launcher, {**os.environ, "HEKLA_METRICS_PORT": "9101"})


def test_process_is_spawned_while_other_threads_run() -> None:
    launcher, stop = Launcher(), threading.Event()
    launcher._loaded_with = dict(os.environ)
    other = threading.Thread(target=stop.wait)
    other.start()
    try:
        assert "Linux" in _spawn(launcher, dict(os.environ))
    finally:
        stop.set()
        other.join()


def test_too_long_title_is_cut() -> None:
    code = (
        f"from hekla.launcher.up.titles import {set_title.__name__} as title\n"
        "title('x' * 10_000); print(open('/proc/self/cmdline').read().count('x'), __import__('os').environ['PATH'])"
    )
    env = {"PYTHONPATH": "platform", "PATH": os.environ["PATH"]}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    length, path = done.stdout.split(maxsplit=1)
    assert int(length) == len("\0".join([sys.executable, "-c", code]).encode())
    assert path.strip() == os.environ["PATH"]


def test_signal_that_ended_the_fork_is_reported(fork: Fork) -> None:
    parent = fork.start("time.sleep(100)")
    assert parent.stdout is not None
    os.kill(int(parent.stdout.readline()), signal.SIGKILL)
    assert json.loads(parent.communicate(timeout=60)[0])["code"] == -signal.SIGKILL
