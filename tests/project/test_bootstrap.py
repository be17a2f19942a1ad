"""The virtual environment: created on the first start, filled again after changes, with clear errors."""

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
    """Run manage.py as a new user does: without variables of Hekla, from another folder."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("HEKLA_", "PYTHON"))}
    return subprocess.run(
        [sys.executable, MANAGE, *argv], env=environment | changes, cwd="/", capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("argv", [[], ["help"], ["--help"], ["-h"]])
def test_manage_without_a_command_shows_help_and_installs_nothing(argv: list[str], tmp_path: Path) -> None:
    done = manage(*argv, HEKLA_VENV=str(tmp_path / "venv"))
    assert done.returncode == 0
    assert "manage.py up" in done.stdout
    assert "manage.py test" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_source_root_does_not_hide_the_standard_library() -> None:
    """With an `__init__.py`, `platform/` would be imported instead of the standard module of that name."""
    assert not (CHECKOUT / "platform" / "__init__.py").exists()
    code = "import sys; sys.path.insert(0, 'platform'); import hekla, platform; print(platform.system())"
    done = subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() in {"Linux", "Darwin"}


def test_start_up_needs_no_packages() -> None:
    """`-S` hides the installed packages. The start-up code must work without them."""
    code = (
        "import sys; sys.path.insert(0, 'platform')\n"
        "import hekla.launcher.bootstrap, hekla.launcher.up\n"
        "heavy = {'django', 'celery', 'pydantic', 'psycopg', 'redis', 'numpy'} & set(sys.modules)\n"
        "sys.exit(', '.join(heavy) or 0)"
    )
    done = subprocess.run([sys.executable, "-S", "-c", code], cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_old_python_is_refused_with_the_required_version(tmp_path: Path) -> None:
    copy = tmp_path / "manage.py"
    copy.write_text((CHECKOUT / "manage.py").read_text().replace("OLDEST = (3, 11)", "OLDEST = (99, 0)"))
    done = subprocess.run([sys.executable, str(copy), "up"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("Hekla needs Python 99.0 or later, and this is Python 3.")


class FakeInstallation:
    """An environment in its own checkout. The installation is replaced by a record of its calls."""

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
def installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeInstallation:
    return FakeInstallation(tmp_path / "checkout", monkeypatch)


def test_second_start_installs_nothing(installation: FakeInstallation) -> None:
    installation.environment.enter("run")
    installation.environment.enter("run")
    assert installation.installs == ["run"]


def test_hekla_is_compiled_with_the_installation(installation: FakeInstallation) -> None:
    code = installation.environment.checkout / "platform" / "hekla" / "one.py"
    code.parent.mkdir(parents=True)
    code.write_text("one = 1\n")
    installation.environment.enter("run")
    assert list(code.parent.glob("__pycache__/one.*.pyc"))


def test_test_requirements_contain_the_run_requirements_but_not_vice_versa(installation: FakeInstallation) -> None:
    installation.environment.enter("run")
    installation.environment.enter("test")
    installation.environment.enter("run")
    assert installation.installs == ["run", "test"]


def test_new_lock_is_installed_once(installation: FakeInstallation) -> None:
    installation.environment.enter("test")
    (installation.locks / "run.txt").write_text("run==2\n")
    for _ in range(2):
        installation.environment.enter("run")
    assert installation.installs == ["test", "run"]


def test_moved_checkout_is_installed_again(installation: FakeInstallation, tmp_path: Path) -> None:
    installation.environment.enter("run")
    relocated = tmp_path / "moved"
    installation.environment.checkout.rename(relocated)
    VirtualEnvironment(relocated / ".venv", relocated).enter("run")
    assert installation.installs == ["run", "run"]
    [link] = (relocated / ".venv").glob("lib/*/site-packages/hekla-checkout.pth")
    assert link.read_text() == f"{relocated / 'platform'}\n"


def test_environment_without_its_python_is_created_again(installation: FakeInstallation) -> None:
    installation.environment.enter("run")
    installation.environment.python.unlink()
    installation.environment.python.symlink_to("/nonexistent/python3.9")
    installation.environment.enter("run")
    assert installation.installs == ["run", "run"]


def test_interrupted_installation_is_not_marked_as_complete(
    installation: FakeInstallation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut_off(_python: Path, _lock: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(installer, "install", cut_off)
    with pytest.raises(KeyboardInterrupt):
        installation.environment.enter("run")
    assert not installation.environment.is_filled("run")


def test_concurrent_starts_install_once(installation: FakeInstallation, monkeypatch: pytest.MonkeyPatch) -> None:
    barrier = threading.Barrier(2)
    original = VirtualEnvironment.is_filled
    waited: set[int] = set()

    def is_filled(self: VirtualEnvironment, wanted: str) -> bool:
        answer = original(self, wanted)
        if threading.get_ident() not in waited:
            waited.add(threading.get_ident())
            barrier.wait(10)
        return answer

    monkeypatch.setattr(VirtualEnvironment, "is_filled", is_filled)
    starts = [threading.Thread(target=installation.environment.enter, args=("run",)) for _ in range(2)]
    for start in starts:
        start.start()
    for start in starts:
        start.join(20)
    assert installation.installs == ["run"]


def test_hekla_command_runs_in_a_path_with_spaces(installation: FakeInstallation, tmp_path: Path) -> None:
    checkout = tmp_path / "my own checkout"
    shutil.copytree(installation.environment.checkout, checkout)
    cli = checkout / "platform" / "hekla" / "cli"
    cli.mkdir(parents=True)
    (cli / "main.py").write_text("import sys\ndef main():\n    print(sys.argv)\n    return 7\n")
    environment = VirtualEnvironment(checkout / ".venv", checkout)
    environment.enter("run")
    path = {"PYTHONPATH": str(checkout / "platform")}  # this environment does not read its .pth file
    done = subprocess.run(
        [checkout / ".venv" / "bin" / "hekla", "job", "a b"], env=path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (7, "['hekla', 'job', 'a b']\n")


def test_unwritable_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LaunchRefused, match="HEKLA_VENV"):
        VirtualEnvironment(tmp_path / "file" / "venv", CHECKOUT).enter("run")


def test_python_without_venv_is_refused_with_the_package_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
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
def test_failed_installation_is_explained(output: str, sentence: str) -> None:
    code = f"import sys; sys.stderr.write({output!r}); sys.exit(1)"
    with pytest.raises(LaunchRefused, match=sentence) as refused:
        installer._run([sys.executable, "-c", code])
    assert output in refused.value.message


@pytest.mark.parametrize("name", ["run", "test"])
def test_locks_have_hashes_and_no_registry(name: str) -> None:
    text = VirtualEnvironment(CHECKOUT / ".venv").requirements(name).read_text()
    pinned = installer._PINNED.findall(text)
    assert len(pinned) > 50
    assert "://" not in text
    assert "index-url" not in text
    blocks = text.split("\n")
    for number, line in enumerate(blocks):
        if line and not line.startswith(" "):
            assert blocks[number + 1].strip().startswith("--hash=sha256:"), line


def test_test_lock_contains_the_run_lock() -> None:
    def versions(name: str) -> set[str]:
        text = VirtualEnvironment(CHECKOUT / ".venv").requirements(name).read_text()
        return {line.split(" ")[0] for line in text.splitlines() if "==" in line and not line.startswith(" ")}

    assert versions("run") <= versions("test")


def test_installer_is_installed_by_its_hash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[str] = []

    def run(argv: list[str], *_rest: object) -> None:
        commands.append(Path(argv[-1]).read_text() if "-r" in argv else " ".join(argv))

    monkeypatch.setattr(installer, "_run", run)
    monkeypatch.setattr(installer, "_index_for_uv", lambda _python: {})
    installer.install(tmp_path / "bin" / "python", VirtualEnvironment(CHECKOUT / ".venv").requirements("run"))
    assert commands[0].startswith("uv==")
    assert "--hash=sha256:" in commands[0]
    assert commands[0].count("==") == 1
    assert "--require-hashes" in commands[1]


def test_uv_uses_the_index_of_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_INDEX_URL", "https://mirror.example/simple")
    assert installer._index_for_uv(Path(sys.executable)) == {"UV_DEFAULT_INDEX": "https://mirror.example/simple"}
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://chosen.example/simple")
    assert installer._index_for_uv(Path(sys.executable)) == {}
