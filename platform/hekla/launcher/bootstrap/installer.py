"""Creates a virtual environment and installs a lock file: pip installs uv, and uv the rest.

pip alone would take many times as long. The hash of every file is checked against the lock file.
"""

import os
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from hekla.launcher.terminal import LaunchRefused, Step, step

_PINNED = re.compile(r"^([A-Za-z0-9_.-]+)==\S+", re.MULTILINE)
_NO_NETWORK = re.compile(
    r"failed to fetch|dns error|connection refused|connect(ion)? (error|timed? ?out)|error sending request|unreachable|"
    r"Temporary failure in name resolution|NewConnectionError|ConnectTimeout|ProxyError|ConnectionResetError",
    re.IGNORECASE,
)
_NOT_TRUSTED = re.compile(r"certificate", re.IGNORECASE)
_NO_SPACE = re.compile(r"no space left|disk quota", re.IGNORECASE)
_SELDOM_LOADED = r"/site-packages/(kubernetes/aio|mypyc?|.+/tests)/"
"""Code that costs a quarter of the compilation and that Hekla does not import. If it ever does, Python compiles it."""


def make_environment(folder: Path) -> None:
    """Create an empty virtual environment of the running Python. Raises LaunchRefused."""
    if find_spec("venv") and find_spec("ensurepip"):
        _run([sys.executable, "-m", "venv", str(folder)])
    elif uv := shutil.which("uv"):
        _run([uv, "venv", "--quiet", "--seed", "--python", sys.executable, str(folder)])
    else:
        raise LaunchRefused(
            "This Python cannot make virtual environments: its parts venv and ensurepip are missing. "
            "Install them (on Debian and Ubuntu: apt-get install python3-venv), then run the same command again."
        )


def install(python: Path, requirements: Path) -> None:
    """Install a lock file into the environment of `python`. Raises LaunchRefused."""
    locked = requirements.read_text(encoding="utf-8")
    uv = python.with_name("uv")
    if not _answers(uv):
        with step("fetching the installer, uv") as running:
            _install_uv(python, locked, running)
    with step(f"installing {len(_PINNED.findall(locked))} packages") as running:
        target = ["--python", str(python), "--require-hashes", "--requirements", str(requirements)]
        settings = {**_certificates_for_uv(), **_index_for_uv(python)}
        _run([str(uv), "pip", "install", "--quiet", *target], running, settings)
        for packages in python.parent.parent.glob("lib/python3*/site-packages"):
            compile_code(python, packages)


def compile_code(python: Path, folder: Path) -> None:
    """Compile Hekla's code or its packages to bytecode, so that the first start is fast.

    Each core compiles a part of the folders; the workers of `compileall` itself get file by file, which takes longer.
    Fails silently in a read-only folder; every start is then slower.
    """
    argv = [str(python), "-m", "compileall", "-q", "-x", _SELDOM_LOADED]
    names, cores = sorted(str(path) for path in folder.glob("*")), os.cpu_count() or 1
    parts = [part for number in range(cores) if (part := names[number::cores])]
    no = subprocess.DEVNULL
    for compiling in [subprocess.Popen([*argv, *part], stdin=no, stdout=no, stderr=no) for part in parts]:
        compiling.wait()


def make_database_template(python: Path, checkout: Path) -> None:
    """Create the database that new data folders copy. If this fails, their first start only takes longer."""
    argv = [str(python), "-c", "from hekla.launcher.up.template import make_template; make_template()"]
    with step("preparing a database to copy"):
        subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            check=False,
            env={**os.environ, "PYTHONPATH": str(checkout / "platform")},
        )


def _install_uv(python: Path, locked: str, running: Step) -> None:
    block = re.search(r"^uv==.*?(?=^\S|\Z)", locked, re.MULTILINE | re.DOTALL)
    if block is None:
        raise LaunchRefused("The lock file does not name uv. Restore deploy/requirements/ from the repository.")
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as only_uv:
        only_uv.write(block[0])
        only_uv.flush()
        options = ["--quiet", "--disable-pip-version-check", "--no-compile", "--no-deps", "--require-hashes"]
        _run([str(python), "-m", "pip", "install", *options, "-r", only_uv.name], running)


def _certificates_for_uv() -> dict[str, str]:
    """Make uv use the system's certificates, if there are any: they can include the certificate of a proxy."""
    return {"UV_SYSTEM_CERTS": "true"} if ssl.get_default_verify_paths().cafile else {}


def _index_for_uv(python: Path) -> dict[str, str]:
    """Pass pip's package index on to uv, which does not read pip's settings."""
    if "UV_DEFAULT_INDEX" in os.environ or "UV_INDEX_URL" in os.environ:
        return {}
    command = [str(python), "-m", "pip", "config", "get", "global.index-url"]
    index = (
        os.environ.get("PIP_INDEX_URL") or subprocess.run(command, capture_output=True, text=True, check=False).stdout
    )
    return {"UV_DEFAULT_INDEX": index.strip()} if index.strip() else {}


def _answers(program: Path) -> bool:
    try:
        return subprocess.run([program, "--version"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def _run(argv: Sequence[str], running: Step | None = None, extra: Mapping[str, str] | None = None) -> None:
    """Run a program to its end, with progress. Raises LaunchRefused with the reason."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        environment = {**os.environ, **(extra or {})}
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment)
        try:
            while process.poll() is None:
                time.sleep(0.1)
                if running:
                    running.tick()
        finally:
            process.terminate()
        if process.returncode != 0:
            output.seek(0)
            raise LaunchRefused(_explain(output.read()))


def _explain(output: str) -> str:
    last_lines = "\n".join(f"    {line}" for line in output.strip().splitlines()[-8:])
    if _NO_SPACE.search(output):
        what = "The disk is full: the packages need about 700 MB. Make room, then run the same command again."
    elif _NOT_TRUSTED.search(output):
        what = (
            "The packages could not be downloaded: this machine does not trust whoever answered. Where a proxy stands "
            "between, add its certificate to the system's, or name it in SSL_CERT_FILE, then run the command again."
        )
    elif _NO_NETWORK.search(output):
        what = (
            "The packages could not be downloaded. Check the network (and HTTPS_PROXY, if this machine needs a proxy), "
            "then run the same command again."
        )
    else:
        what = "The packages could not be installed."
    return f"{what} The installer said:\n{last_lines}" if last_lines else what
