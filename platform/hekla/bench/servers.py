"""PostgreSQL and Valkey for one measurement, with production settings: acknowledged data are durable."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from hekla.launcher.embedded import Postgres, Valkey
from hekla.launcher.embedded.rundir import run_dir
from hekla.launcher.embedded.running import running
from hekla.launcher.up.template import template_folder


@contextmanager
def servers(folder: Path | None = None) -> Iterator[Path]:
    """Run both servers, set their URLs in the environment, and yield the data folder.

    `folder`: keeps the data, for another measurement of them; None: they are deleted in the end.
    """
    home = Path(tempfile.mkdtemp(prefix="hekla-bench-")) if folder is None else folder.absolute()
    run = run_dir(home)
    postgres, valkey = Postgres(home / "postgres", run, template=template_folder()), Valkey(run)
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        with ExitStack() as stack, (home / "servers.log").open("ab") as log:
            for server in (postgres, valkey):
                stack.enter_context(running(server, log.fileno()))
            os.environ |= {"DATABASE_URL": postgres.url, "VALKEY_URL": valkey.url, "HEKLA_HOME": str(home)}
            os.environ |= {"HEKLA_SECRET_KEY": "bench", "DJANGO_SETTINGS_MODULE": "hekla.project.settings"}
            yield home
    finally:
        if folder is None:
            shutil.rmtree(home, ignore_errors=True)
