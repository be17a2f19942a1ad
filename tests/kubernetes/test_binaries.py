"""The messages when the programs of a control plane, Helm or Volcano are not available."""

import shutil
from pathlib import Path

import pytest
from tests.kubernetes.binaries import CONTROL_PLANE, HELM, VOLCANO
from tests.kubernetes.go_programs import GoPrograms, NoBinaries

EACH_PROGRAM = pytest.mark.parametrize("binaries", [CONTROL_PLANE, HELM, VOLCANO], ids=lambda binaries: binaries.cache)


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@EACH_PROGRAM
def test_missing_go_is_reported(binaries: GoPrograms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoBinaries, match=rf"^no {binaries.name}: no Go on this machine"):
        binaries.built()


@EACH_PROGRAM
@pytest.mark.kubernetes
def test_unreachable_modules_are_reported_and_leave_no_partial_build(
    binaries: GoPrograms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("go") is None:
        pytest.skip(f"no {binaries.name}: no Go on this machine")
    monkeypatch.setenv("GOPROXY", "off")
    monkeypatch.setenv("GOMODCACHE", str(tmp_path / "modules"))
    with pytest.raises(NoBinaries, match=rf"^no {binaries.name}: the Go modules cannot be had: "):
        binaries.built()
    assert [path.name for path in (tmp_path / binaries.cache).iterdir()] == ["lock"]
