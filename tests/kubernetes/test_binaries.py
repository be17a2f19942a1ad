"""What is said where the programs of a control plane, or Helm, cannot be had."""

import shutil
from pathlib import Path

import pytest
from tests.kubernetes.binaries import CONTROL_PLANE, HELM, VOLCANO
from tests.kubernetes.go_programs import GoPrograms, NoBinaries

EACH = pytest.mark.parametrize("wanted", [CONTROL_PLANE, HELM, VOLCANO], ids=lambda wanted: wanted.cache)


@pytest.fixture(autouse=True)
def nothing_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@EACH
def test_a_machine_without_go_is_told_so(wanted: GoPrograms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoBinaries, match=rf"^no {wanted.name}: no Go on this machine"):
        wanted.built()


@EACH
@pytest.mark.kubernetes
def test_a_machine_that_reaches_no_modules_is_told_so_and_nothing_half_made_stays(
    wanted: GoPrograms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("go") is None:
        pytest.skip(f"no {wanted.name}: no Go on this machine")
    monkeypatch.setenv("GOPROXY", "off")
    monkeypatch.setenv("GOMODCACHE", str(tmp_path / "modules"))
    with pytest.raises(NoBinaries, match=rf"^no {wanted.name}: the Go modules cannot be had: "):
        wanted.built()
    assert [path.name for path in (tmp_path / wanted.cache).iterdir()] == ["lock"]
