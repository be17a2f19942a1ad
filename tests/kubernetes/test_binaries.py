"""What is said where the programs of a control plane cannot be had."""

import shutil
from pathlib import Path

import pytest
from tests.kubernetes.binaries import NoBinaries, binaries


@pytest.fixture(autouse=True)
def nothing_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_a_machine_without_go_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoBinaries, match=r"^no Kubernetes control plane: no Go on this machine"):
        binaries()


@pytest.mark.kubernetes
def test_a_machine_that_reaches_no_modules_is_told_so_and_nothing_half_made_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("go") is None:
        pytest.skip("no Kubernetes control plane: no Go on this machine")
    monkeypatch.setenv("GOPROXY", "off")
    monkeypatch.setenv("GOMODCACHE", str(tmp_path / "modules"))
    with pytest.raises(NoBinaries, match=r"^no Kubernetes control plane: the Go modules cannot be had: "):
        binaries()
    assert [path.name for path in (tmp_path / "hekla-kubernetes").iterdir()] == ["lock"]
