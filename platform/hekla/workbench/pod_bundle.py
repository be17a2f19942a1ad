"""What a session with JupyterLab brings into its pod: the Python client with its magics, and a button of JupyterLab.

The pod needs no network for it. The libraries of the client come from the console's own environment, and are the last
to be found in the pod: those that the pod has itself go before.
"""

import io
import zipfile
from base64 import b64encode
from collections.abc import Iterator
from functools import cache
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path

_LIBRARIES = ("httpx2", "httpcore2", "truststore", "h11", "idna", "anyio", "typing_extensions", "click")
_CLIENT = Path(__file__).parents[1] / "client"  # files to copy: the console itself does not use it
_LABEXTENSION = Path(__file__).parent / "labextension"
_PACKAGE = '''"""The part of Hekla that sessions have: `from hekla.client import Client`."""

import sys
from pathlib import Path

_LIBRARIES = str(Path(__file__).parents[2] / "libraries")
if _LIBRARIES not in sys.path:
    sys.path.append(_LIBRARIES)
'''
_STARTUP = """import os as _os

if "get_ipython" in globals():
    try:
        from hekla.client import magics as _magics

        _magics.load_ipython_extension(get_ipython())
    except Exception as _error:
        print("The magics of Hekla are not available:", _error)
if _os.path.isfile(_os.environ.get("HEKLA_PYTHONSTARTUP", "")):
    with open(_os.environ["HEKLA_PYTHONSTARTUP"]) as _file:
        exec(compile(_file.read(), _os.environ["HEKLA_PYTHONSTARTUP"], "exec"))
"""
_SERVER_CONFIG = '{"ServerApp": {"jpserver_extensions": {"hekla.client.jupyter": true}}}'


@cache
def bundle() -> str:
    """A ZIP file in base64, the same for all pods: `python`, `libraries`, `etc`, `share` and `startup.py`."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("python/hekla/__init__.py", _PACKAGE)
        archive.writestr("startup.py", _STARTUP)
        archive.writestr("etc/jupyter/jupyter_server_config.d/hekla.json", _SERVER_CONFIG)
        for path in sorted(_CLIENT.glob("*.py")):
            archive.write(path, f"python/hekla/client/{path.name}")
        for path in sorted(_LABEXTENSION.rglob("*.js*")):
            archive.write(path, f"share/jupyter/labextensions/hekla-submit/{path.relative_to(_LABEXTENSION)}")
        for name in _LIBRARIES:
            metadata = distribution(name)  # some read their own version there
            folder = f"{name}-{metadata.version}.dist-info"
            archive.writestr(f"libraries/{folder}/METADATA", metadata.read_text("METADATA") or "")
            for path, inner in _files_of(name):
                archive.write(path, f"libraries/{inner}")
    return b64encode(target.getvalue()).decode()


def _files_of(library: str) -> Iterator[tuple[Path, str]]:
    """The files of a pure Python library, each with its path below the folder of libraries."""
    spec = find_spec(library)
    if spec is None or spec.origin is None:
        return
    origin = Path(spec.origin)
    if spec.submodule_search_locations is None:
        yield origin, origin.name
        return
    for path in sorted(origin.parent.rglob("*.py")):
        yield path, str(path.relative_to(origin.parents[1]))
