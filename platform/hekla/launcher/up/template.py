"""A template database with all tables, created when the packages are installed. New data folders copy it.

Creating the tables takes as long as the rest of a first start together, with the same result each time. Without a
template (its creation failed, or the migrations have changed since), a start creates the tables itself.
"""

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from hekla.launcher.embedded import Postgres
from hekla.launcher.embedded.rundir import run_dir
from hekla.launcher.embedded.running import running
from hekla.launcher.up.tables import fingerprint
from hekla.lib.checkout import CHECKOUT


def template_folder() -> Path:
    """The folder of the template for this code, whether it exists or not; in the virtual environment."""
    return _templates() / fingerprint("")


def make_template() -> None:
    """Create a missing template, and delete templates of other code. Raises LaunchRefused, CalledProcessError."""
    wanted = template_folder()
    if not wanted.exists():
        _templates().mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=_templates()) as work:
            _make_tables(Path(work))
            (Path(work) / "postgres").rename(wanted)
    for other in _templates().iterdir():
        if other != wanted:
            shutil.rmtree(other, ignore_errors=True)


def _templates() -> Path:
    return Path(sys.prefix) / "hekla-databases"


def _make_tables(work: Path) -> None:
    server = Postgres(work / "postgres", run_dir(work))
    env = {
        **os.environ,
        "DATABASE_URL": server.url,
        "VALKEY_URL": "redis://127.0.0.1:0",  # nothing is sent
        "HEKLA_SECRET_KEY": secrets.token_hex(32),
        "HEKLA_HOME": str(work),
        "DJANGO_SETTINGS_MODULE": "hekla.project.settings",
        "PYTHONPATH": str(CHECKOUT / "platform"),
    }
    migrate = [sys.executable, "-m", "django", "migrate", "--noinput", "--skip-checks"]
    with (work / "log").open("wb") as log, running(server, log.fileno()):
        subprocess.run(migrate, env=env, stdout=log, stderr=log, check=True)
