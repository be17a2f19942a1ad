"""Environments built from a requirements list, with a package of the test and without network."""

import zipfile
from pathlib import Path

import pytest

from hekla.backends.base import EnvironmentSpec, StartRefused
from hekla.domain.phases import PodPhase

METADATA = "Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n"
WHEEL = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
GREET = ("python", "-c", "import greeting; print(greeting.WORD)")


@pytest.fixture
def greeting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EnvironmentSpec:
    """An environment with a package that contains one word."""
    monkeypatch.setenv("UV_OFFLINE", "1")
    wheel = tmp_path / "greeting-1.0-py3-none-any.whl"
    members = {
        "greeting.py": "WORD = 'good morning'\n",
        "greeting-1.0.dist-info/METADATA": METADATA,
        "greeting-1.0.dist-info/WHEEL": WHEEL,
    }
    record = "".join(f"{name},,\n" for name in [*members, "greeting-1.0.dist-info/RECORD"])
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in {**members, "greeting-1.0.dist-info/RECORD": record}.items():
            archive.writestr(name, text)
    return EnvironmentSpec("greetings", (f"greeting @ {wheel.as_uri()}",))


def test_environment_is_built_once_and_shared(local, greeting):
    first, second = (local.order(n, command=GREET, environment=greeting) for n in (0, 1))
    local.start(first)
    local.start(second)
    for order in (first, second):
        assert local.ended(order.key).phase == PodPhase.SUCCEEDED, local.log(order.key)
        assert local.log(order.key).endswith("good morning\n")
    built = [key for key in (first.key, second.key) if "Building the environment greetings" in local.log(key)]
    assert len(built) == 1
    assert list(local.home.glob("environments/*/lib/*/site-packages/__pycache__/greeting.*.pyc"))
    third = local.started(local.order(2, command=GREET, environment=greeting))
    local.ended(third)
    assert local.log(third) == "good morning\n"


def test_interrupted_build_is_repeated(local, greeting):
    local.ended(local.started(local.order(0, command=GREET, environment=greeting)))
    (marker,) = (local.home / "environments").glob("*/.hekla-ready")
    marker.unlink()
    (marker.parent / "bin" / "python").unlink()
    again = local.started(local.order(1, command=GREET, environment=greeting))
    assert local.ended(again).phase == PodPhase.SUCCEEDED
    assert "is ready after" in local.log(again)


def test_pod_is_preparing_during_the_build(local, greeting):
    key = local.started(local.order(command=GREET, environment=greeting))
    assert local.until(key, PodPhase.PREPARING, PodPhase.RUNNING).phase == PodPhase.PREPARING
    local.ended(key)


def test_failed_build_has_a_reason(local, monkeypatch):
    monkeypatch.setenv("UV_OFFLINE", "1")
    environment = EnvironmentSpec("dreams", ("no-such-package-anywhere==9.9",))
    key = local.started(local.order(script="echo ran", environment=environment))
    pod = local.ended(key)
    assert (pod.phase, pod.reason, pod.exit_code) == (PodPhase.FAILED, "EnvironmentFailed", None)
    assert "dreams" in pod.message
    assert "no-such-package-anywhere" in pod.message
    assert "ran\n" not in local.log(key)


def test_build_can_be_stopped(local, greeting, tmp_path):
    folder = tmp_path / "slow"
    folder.mkdir()
    (folder / "pyproject.toml").write_text(
        "[build-system]\nrequires = []\nbuild-backend = 'slow'\nbackend-path = ['.']"
    )
    (folder / "slow.py").write_text("import time\ntime.sleep(1000)\n")
    environment = EnvironmentSpec("slow", (f"slow @ {folder.as_uri()}",))
    key = local.started(local.order(environment=environment))
    local.until(key, PodPhase.PREPARING)
    local.stop(key, reason="Too slow")
    assert local.ended(key).message == "Too slow"


@pytest.mark.parametrize("requirement", ["--index-url=http://example.org", " -e .", "numpy\n--pre"])
def test_pip_options_are_refused_as_requirements(local, requirement):
    with pytest.raises(StartRefused):
        local.start(local.order(environment=EnvironmentSpec("sly", (requirement,))))
