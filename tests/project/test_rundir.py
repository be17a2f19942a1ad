"""Sockets have short paths, also for data folders with long paths."""

import os
from pathlib import Path

import pytest

from hekla.launcher.embedded.rundir import LONGEST_PATH, LONGEST_SOCKET_NAME, run_dir, socket_folder
from hekla.launcher.terminal import LaunchRefused


def test_sockets_are_in_the_data_folder_if_its_path_is_short() -> None:
    assert socket_folder(Path("/srv/hekla")) == Path("/srv/hekla/run")


@pytest.mark.parametrize("name", ["x" * 120, "数" * 40])
def test_long_path_gets_a_short_and_stable_run_folder(tmp_path: Path, name: str) -> None:
    home = tmp_path / name
    folder = run_dir(home)
    assert len(os.fsencode(folder)) + len(LONGEST_SOCKET_NAME) <= LONGEST_PATH
    assert folder == run_dir(home)
    assert folder != run_dir(tmp_path / f"{name}y")
    assert folder.stat().st_mode & 0o777 == 0o700
    for path in (folder, socket_folder(tmp_path / f"{name}y")):
        path.rmdir()


def test_run_folder_that_is_a_symlink_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LaunchRefused, match="belongs to another user"):
        run_dir(tmp_path)
