"""The template database that new data folders are copied from."""

import os
import shutil
import sys
from pathlib import Path

import psycopg
import pytest
from django.db.migrations.loader import MigrationLoader

from hekla.launcher.embedded import Postgres
from hekla.launcher.embedded.rundir import run_dir
from hekla.launcher.embedded.running import running
from hekla.launcher.up.template import make_template, template_folder


@pytest.mark.parametrize("is_installed", [True, pytest.param(False, marks=pytest.mark.thorough)])
def test_new_folder_is_a_copy_with_all_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_installed: bool
) -> None:
    """Of the template that came with the packages. The same commands make it where it is missing."""
    installed = template_folder()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    old = template_folder().parent / "of-other-code"
    old.mkdir(parents=True)
    if is_installed and installed.is_dir():
        shutil.copytree(installed, template_folder())
    make_template()
    assert list(old.parent.iterdir()) == [template_folder()]

    home = tmp_path / "home"
    server = Postgres(home / "postgres", run_dir(home), transient=True, template=template_folder())
    with running(server, os.open(os.devnull, os.O_WRONLY)), psycopg.connect(server.url) as connection:
        applied = set(connection.execute("SELECT app, name FROM django_migrations").fetchall())
    assert applied == set(MigrationLoader(None, ignore_no_migrations=True).disk_migrations)


def test_new_folder_without_a_template_is_empty(tmp_path: Path) -> None:
    server = Postgres(tmp_path / "postgres", run_dir(tmp_path), transient=True, template=tmp_path / "missing")
    with running(server, os.open(os.devnull, os.O_WRONLY)), psycopg.connect(server.url) as connection:
        assert connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone() == (0,)
