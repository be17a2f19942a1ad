"""Sockets have short paths, wherever the data lie."""

import os
from pathlib import Path

import pytest

from hekla.launcher.embedded.rundir import LONGEST_PATH, LONGEST_SOCKET_NAME, run_dir, socket_folder
from hekla.launcher.terminal import LaunchRefused


def test_sockets_lie_with_the_data_where_the_path_is_short() -> None:
    assert socket_folder(Path("/srv/hekla")) == Path("/srv/hekla/run")


@pytest.mark.parametrize("name", ["x" * 120, "数" * 40])
def test_a_long_path_leads_to_a_short_one_that_is_always_the_same(tmp_path: Path, name: str) -> None:
    home = tmp_path / name
    folder = run_dir(home)
    assert len(os.fsencode(folder)) + len(LONGEST_SOCKET_NAME) <= LONGEST_PATH
    assert folder == run_dir(home)
    assert folder != run_dir(tmp_path / f"{name}y")
    assert folder.stat().st_mode & 0o777 == 0o700
    for made in (folder, socket_folder(tmp_path / f"{name}y")):
        made.rmdir()


def test_a_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LaunchRefused, match="belongs to another user"):
        run_dir(tmp_path)
