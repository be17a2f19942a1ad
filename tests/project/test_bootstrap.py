"""From a bare Python to a running command: the environment, its stamp, and the sentences where it cannot be made."""

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hekla.launcher.bootstrap import installer
from hekla.launcher.bootstrap.environment import VirtualEnvironment
from hekla.launcher.terminal import LaunchRefused
from hekla.lib.checkout import CHECKOUT

MANAGE = str(CHECKOUT / "manage.py")


def manage(*argv: str, **changes: str) -> subprocess.CompletedProcess[str]:
    """As a newcomer types it: no variable of Hekla's, any folder."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HEKLA_", "PYTHON"))}
    return subprocess.run(
        [sys.executable, MANAGE, *argv], env=kept | changes, cwd="/", capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("argv", [[], ["help"], ["--help"], ["-h"]])
def test_alone_it_says_what_it_can_do_and_installs_nothing(argv: list[str], tmp_path: Path) -> None:
    done = manage(*argv, HEKLA_VENV=str(tmp_path / "venv"))
    assert done.returncode == 0
    assert "manage.py up" in done.stdout
    assert "manage.py test" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_the_source_root_does_not_hide_the_standard_library() -> None:
    """`platform/` with an `__init__.py` would be imported in place of the module of that name."""
    assert not (CHECKOUT / "platform" / "__init__.py").exists()
    code = "import sys; sys.path.insert(0, 'platform'); import hekla, platform; print(platform.system())"
    done = subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() in {"Linux", "Darwin"}


def test_start_up_needs_nothing_that_is_not_installed() -> None:
    """`-S` leaves the packages out; what starts Hekla must do without them, and stay small."""
    code = (
        "import sys; sys.path.insert(0, 'platform')\n"
        "import hekla.launcher.bootstrap, hekla.launcher.up\n"
        "heavy = {'django', 'celery', 'pydantic', 'psycopg', 'redis', 'numpy'} & set(sys.modules)\n"
        "sys.exit(', '.join(heavy) or 0)"
    )
    done = subprocess.run([sys.executable, "-S", "-c", code], cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_old_python_is_told_which_one_it_takes(tmp_path: Path) -> None:
    copy = tmp_path / "manage.py"
    copy.write_text((CHECKOUT / "manage.py").read_text().replace("OLDEST = (3, 11)", "OLDEST = (99, 0)"))
    done = subprocess.run([sys.executable, str(copy), "up"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("Hekla needs Python 99.0 or later, and this is Python 3.")


class Installed:
    """An environment in a checkout of its own, filled by something quicker than an installation."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.locks = folder / "deploy" / "requirements"
        self.locks.mkdir(parents=True)
        for name in ("run", "test"):
            (self.locks / f"{name}.txt").write_text(f"{name}==1\n")
        self.environment = VirtualEnvironment(folder / ".venv", folder)
        self.installs: list[str] = []
        monkeypatch.setattr(installer, "make_environment", self._make)
        monkeypatch.setattr(installer, "install", lambda _python, lock: self.installs.append(lock.stem))
        monkeypatch.setattr(VirtualEnvironment, "_go_on_inside", lambda _self: None)

    def _make(self, folder: Path) -> None:
        (folder / "bin").mkdir(parents=True)
        (folder / "bin" / "python").symlink_to(sys.executable)
        (folder / "lib" / "python3.11" / "site-packages").mkdir(parents=True)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installed:
    return Installed(tmp_path / "checkout", monkeypatch)


def test_a_second_start_installs_nothing(installed: Installed) -> None:
    installed.environment.enter("run")
    installed.environment.enter("run")
    assert installed.installs == ["run"]


def test_our_own_code_is_compiled_with_the_installation(installed: Installed) -> None:
    code = installed.environment.checkout / "platform" / "hekla" / "one.py"
    code.parent.mkdir(parents=True)
    code.write_text("one = 1\n")
    installed.environment.enter("run")
    assert list(code.parent.glob("__pycache__/one.*.pyc"))


def test_the_test_set_contains_the_other_but_not_the_other_way(installed: Installed) -> None:
    installed.environment.enter("run")
    installed.environment.enter("test")
    installed.environment.enter("run")
    assert installed.installs == ["run", "test"]


def test_a_new_lock_is_installed_and_only_once(installed: Installed) -> None:
    installed.environment.enter("test")
    (installed.locks / "run.txt").write_text("run==2\n")
    for _ in range(2):
        installed.environment.enter("run")
    assert installed.installs == ["test", "run"]


def test_a_checkout_that_was_moved_is_installed_again(installed: Installed, tmp_path: Path) -> None:
    installed.environment.enter("run")
    moved = tmp_path / "moved"
    installed.environment.checkout.rename(moved)
    VirtualEnvironment(moved / ".venv", moved).enter("run")
    assert installed.installs == ["run", "run"]
    [link] = (moved / ".venv").glob("lib/*/site-packages/hekla-checkout.pth")
    assert link.read_text() == f"{moved / 'platform'}\n"


def test_an_environment_whose_python_has_gone_is_made_again(installed: Installed) -> None:
    installed.environment.enter("run")
    installed.environment.python.unlink()
    installed.environment.python.symlink_to("/nonexistent/python3.9")
    installed.environment.enter("run")
    assert installed.installs == ["run", "run"]


def test_an_installation_that_was_cut_off_is_done_again(installed: Installed, monkeypatch: pytest.MonkeyPatch) -> None:
    def cut_off(_python: Path, _lock: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(installer, "install", cut_off)
    with pytest.raises(KeyboardInterrupt):
        installed.environment.enter("run")
    assert not installed.environment.is_filled("run")


def test_two_starts_at_once_install_once(installed: Installed, monkeypatch: pytest.MonkeyPatch) -> None:
    both = threading.Barrier(2)
    checked = VirtualEnvironment.is_filled
    seen: set[int] = set()

    def is_filled(self: VirtualEnvironment, wanted: str) -> bool:
        answer = checked(self, wanted)
        if threading.get_ident() not in seen:
            seen.add(threading.get_ident())
            both.wait(10)
        return answer

    monkeypatch.setattr(VirtualEnvironment, "is_filled", is_filled)
    starts = [threading.Thread(target=installed.environment.enter, args=("run",)) for _ in range(2)]
    for start in starts:
        start.start()
    for start in starts:
        start.join(20)
    assert installed.installs == ["run"]


def test_the_command_hekla_runs_with_a_path_that_has_spaces(installed: Installed, tmp_path: Path) -> None:
    checkout = tmp_path / "my own checkout"
    shutil.copytree(installed.environment.checkout, checkout)
    cli = checkout / "platform" / "hekla" / "cli"
    cli.mkdir(parents=True)
    (cli / "main.py").write_text("import sys\ndef main():\n    print(sys.argv)\n    return 7\n")
    environment = VirtualEnvironment(checkout / ".venv", checkout)
    environment.enter("run")
    path = {"PYTHONPATH": str(checkout / "platform")}  # this environment is too bare to read its .pth file
    done = subprocess.run(
        [checkout / ".venv" / "bin" / "hekla", "job", "a b"], env=path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (7, "['hekla', 'job', 'a b']\n")


def test_a_folder_that_cannot_be_written_gets_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LaunchRefused, match="HEKLA_VENV"):
        VirtualEnvironment(tmp_path / "file" / "venv", CHECKOUT).enter("run")


def test_a_python_without_venv_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(installer, "find_spec", lambda name: None if name == "ensurepip" else object())
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    with pytest.raises(LaunchRefused, match="apt-get install python3-venv"):
        installer.make_environment(tmp_path / "venv")


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        ("error: Failed to fetch: `https://example.org/simple/uv/`", "Check the network"),
        ("WARNING: Retrying ... Temporary failure in name resolution", "Check the network"),
        ("error: client error (Connect): invalid peer certificate: UnknownIssuer", "does not trust"),
        ("error: No space left on device (os error 28)", "The disk is full"),
        ("error: Hash mismatch for `x`", "could not be installed"),
        ("", "could not be installed"),
    ],
)
def test_a_failed_installation_is_explained(output: str, sentence: str) -> None:
    code = f"import sys; sys.stderr.write({output!r}); sys.exit(1)"
    with pytest.raises(LaunchRefused, match=sentence) as refused:
        installer._run([sys.executable, "-c", code])
    assert output in refused.value.message


@pytest.mark.parametrize("name", ["run", "test"])
def test_the_locks_are_whole_and_name_no_registry(name: str) -> None:
    text = VirtualEnvironment(CHECKOUT / ".venv").requirements(name).read_text()
    pinned = installer._PINNED.findall(text)
    assert len(pinned) > 50
    assert "://" not in text
    assert "index-url" not in text
    blocks = text.split("\n")
    for number, line in enumerate(blocks):
        if line and not line.startswith(" "):
            assert blocks[number + 1].strip().startswith("--hash=sha256:"), line


def test_the_lock_of_the_tests_contains_what_runs() -> None:
    def versions(name: str) -> set[str]:
        text = VirtualEnvironment(CHECKOUT / ".venv").requirements(name).read_text()
        return {line.split(" ")[0] for line in text.splitlines() if "==" in line and not line.startswith(" ")}

    assert versions("run") <= versions("test")


def test_the_installer_itself_is_installed_by_its_hash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def run(argv: list[str], *_rest: object) -> None:
        asked.append(Path(argv[-1]).read_text() if "-r" in argv else " ".join(argv))

    monkeypatch.setattr(installer, "_run", run)
    monkeypatch.setattr(installer, "_index_for_uv", lambda _python: {})
    installer.install(tmp_path / "bin" / "python", VirtualEnvironment(CHECKOUT / ".venv").requirements("run"))
    assert asked[0].startswith("uv==")
    assert "--hash=sha256:" in asked[0]
    assert asked[0].count("==") == 1
    assert "--require-hashes" in asked[1]


def test_where_pip_was_told_to_look_uv_looks_too(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_INDEX_URL", "https://mirror.example/simple")
    assert installer._index_for_uv(Path(sys.executable)) == {"UV_DEFAULT_INDEX": "https://mirror.example/simple"}
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://chosen.example/simple")
    assert installer._index_for_uv(Path(sys.executable)) == {}
