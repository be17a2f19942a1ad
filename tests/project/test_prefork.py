"""Our processes as copies of one that has loaded what they need: each is a process like one that was started anew."""

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

ORIGINAL = """
import fcntl, json, os, signal, sys, time
from hekla.launcher.up import preload
from hekla.launcher.up.prefork import Launcher

preload.load_console = lambda: __import__("json")  # Django takes seconds, and is not what this is about
launcher, env = Launcher(), {**os.environ, "SHARED": "yes"}
launcher.load(env)
signal.signal(signal.SIGTERM, lambda *_: print("the original's own handler", flush=True))
lock = open("lock", "w")
fcntl.flock(lock, fcntl.LOCK_EX)
reader, writer = os.pipe()
copy = launcher.start("tester", ["copied", *sys.argv[1:]], env, writer)
os.close(writer)
print(copy.pid, flush=True)
with os.fdopen(reader, encoding="utf-8") as output:
    said = output.read()
while copy.poll() is None:
    time.sleep(0.01)
print(json.dumps({"code": copy.returncode, "said": said}), flush=True)
"""


class House:
    """An original and its one copy, which runs the module `copied`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "original.py").write_text(ORIGINAL)

    def start(self, body: str, *arguments: str) -> "subprocess.Popen[str]":
        (self.folder / "copied.py").write_text(f"import os, sys, time\n{body}\n")
        env = {**os.environ, "PYTHONPATH": f"{Path('platform').resolve()}:{self.folder}"}
        argv = [sys.executable, "original.py", *arguments]
        return subprocess.Popen(argv, cwd=self.folder, env=env, stdout=subprocess.PIPE, text=True)

    def run(self, body: str, *arguments: str) -> dict[str, object]:
        said, _ = self.start(body, *arguments).communicate(timeout=60)
        return dict(json.loads(said.splitlines()[-1]))


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def test_a_copy_runs_a_module_with_its_arguments_environment_and_output(house: House) -> None:
    body = "print(__name__, sys.argv[1:], os.environ['SHARED'])\nprint('数', file=sys.stderr)"
    said = house.run(body, "--port", "1")["said"]
    assert said == "__main__ ['--port', '1'] yes\n数\n"


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        ("pass", 0, ""),
        ("sys.exit(3)", 3, ""),
        ("sys.exit('no such thing')", 1, "no such thing\n"),
        ("raise KeyboardInterrupt", 130, ""),
        ("os.kill(os.getpid(), 15)", -15, ""),
    ],
)
def test_it_ends_as_a_process_of_its_own_does(house: House, body: str, code: int, said: str) -> None:
    assert house.run(body) == {"code": code, "said": said}


def test_what_it_raises_is_said(house: House) -> None:
    found = house.run("raise RuntimeError('no disk')")
    assert found["code"] == 1
    assert str(found["said"]).endswith("RuntimeError: no disk\n")


def test_its_other_threads_are_waited_for(house: House) -> None:
    body = "import threading\nthreading.Timer(0.2, lambda: print('late')).start()"
    assert house.run(body)["said"] == "late\n"


def test_nothing_of_the_original_is_open_in_it(house: House) -> None:
    body = (
        "paths = {os.readlink(f'/proc/self/fd/{name}') for name in os.listdir('/proc/self/fd')"
        " if os.path.exists(f'/proc/self/fd/{name}')}\n"
        "print([path for path in paths if path.endswith('lock')], os.getsid(0) == os.getpid())"
    )
    assert house.run(body)["said"] == "[] True\n"


def test_lists_of_processes_tell_its_name(house: House) -> None:
    body = "print(open('/proc/self/cmdline').read().strip('\\0'), open('/proc/self/comm').read().strip())"
    assert house.run(body)["said"] == "hekla: tester hekla: tester\n"


def test_it_does_not_outlive_a_killed_original(house: House) -> None:
    original = house.start("print('up', flush=True)\ntime.sleep(100)")
    assert original.stdout is not None
    pid = int(original.stdout.readline())
    descriptor = os.pidfd_open(pid)
    original.kill()
    original.communicate()
    assert _has_ended(descriptor)


def _has_ended(descriptor: int) -> bool:
    try:
        return bool(select.select([descriptor], [], [], 20)[0])
    finally:
        os.close(descriptor)


def test_signals_find_its_own_handlers(house: House) -> None:
    body = "import signal\nprint(signal.getsignal(15), signal.getsignal(2) is signal.default_int_handler)"
    assert house.run(body)["said"] == "0 True\n"


def _spawned(launcher: Launcher, env: dict[str, str]) -> str:
    reader, writer = os.pipe()
    process = launcher.start("tester", ["platform"], env, writer)
    os.close(writer)
    with os.fdopen(reader) as output:
        said = output.read()
    assert isinstance(process, subprocess.Popen)
    assert process.wait(60) == 0
    return said


def test_without_having_loaded_each_loads_for_itself() -> None:
    assert "Linux" in _spawned(Launcher(), dict(os.environ))


def test_one_with_an_environment_of_its_own_loads_for_itself() -> None:
    launcher = Launcher()
    launcher._loaded_with = dict(os.environ)
    assert "Linux" in _spawned(launcher, {**os.environ, "HEKLA_METRICS_PORT": "9101"})


def test_beside_other_threads_each_loads_for_itself() -> None:
    launcher, over = Launcher(), threading.Event()
    launcher._loaded_with = dict(os.environ)
    other = threading.Thread(target=over.wait)
    other.start()
    try:
        assert "Linux" in _spawned(launcher, dict(os.environ))
    finally:
        over.set()
        other.join()


def test_a_title_longer_than_the_room_for_it_is_cut() -> None:
    code = (
        f"from hekla.launcher.up.titles import {set_title.__name__} as title\n"
        "title('x' * 10_000); print(open('/proc/self/cmdline').read().count('x'), __import__('os').environ['PATH'])"
    )
    env = {"PYTHONPATH": "platform", "PATH": os.environ["PATH"]}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    length, path = done.stdout.split(maxsplit=1)
    assert int(length) == len("\0".join([sys.executable, "-c", code]).encode())
    assert path.strip() == os.environ["PATH"]


def test_a_signal_that_ended_it_is_told(house: House) -> None:
    original = house.start("time.sleep(100)")
    assert original.stdout is not None
    os.kill(int(original.stdout.readline()), signal.SIGKILL)
    assert json.loads(original.communicate(timeout=60)[0])["code"] == -signal.SIGKILL
