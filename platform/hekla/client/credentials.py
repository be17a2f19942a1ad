"""The server that the client connects to, and its token.

A token is only sent to the server that it was saved for, or to this machine's own.
"""

import json
import os
import tomllib
from dataclasses import dataclass
from pathlib import Path

import click

from hekla.client.errors import NotConfiguredError

_CHECKOUT = (Path(__file__).parent / "../../..").resolve()
_USUAL = "http://127.0.0.1:8000"


@dataclass(frozen=True, slots=True)
class ServerCredentials:
    """The address of a server, and a token for it."""

    url: str
    token: str


def find_credentials(url: str | None = None, token: str | None = None, home: Path | None = None) -> ServerCredentials:
    """Fill in a missing address or token. Raises NotConfiguredError without a token for the server."""
    known = _candidates(home)
    url = normalize_url(url) if url else known[0].url if known else _USUAL
    token = token or next((server.token for server in known if server.url == url), "")
    if not token:
        raise NotConfiguredError(
            f"There is no token for {url}. Create one on the page “Profile and tokens” of the console, "
            f"then run: hekla login {url}"
        )
    return ServerCredentials(url, token)


def from_environment(url: str | None = None, token: str | None = None) -> ServerCredentials:
    """As `find_credentials`, with the environment variables of the command `hekla`. Raises NotConfiguredError.

    `HEKLA_UNAVAILABLE`: why a session in a pod has no server.
    """
    if not (url or token) and (reason := os.environ.get("HEKLA_UNAVAILABLE")):
        raise NotConfiguredError(reason)
    home = os.environ.get("HEKLA_HOME")
    url, token = url or os.environ.get("HEKLA_SERVER"), token or os.environ.get("HEKLA_TOKEN")
    return find_credentials(url, token, Path(home) if home else None)


def save_credentials(server: ServerCredentials) -> Path:
    """Save both to the user's configuration file, readable by the user only."""
    path = _config_path()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(f"server = {json.dumps(server.url)}\ntoken = {json.dumps(server.token)}\n")
    new.replace(path)
    return path


def normalize_url(url: str) -> str:
    """The address with a scheme and without a trailing slash."""
    url = url.strip().rstrip("/")
    return url if "://" in url else f"http://{url}"


def _candidates(home: Path | None) -> list[ServerCredentials]:
    """By priority: the named data folder, the saved login, this checkout's data folder."""
    saved = _saved()
    own = _local_server(home or _CHECKOUT / ".hekla")
    both = [own, saved] if home else [saved, own]
    return [server for server in both if server]


def _config_path() -> Path:
    return Path(click.get_app_dir("hekla")) / "config.toml"


def _saved() -> ServerCredentials | None:
    path = _config_path()
    if not path.exists():
        return None
    try:
        config = tomllib.loads(path.read_text(encoding="utf-8"))
        return ServerCredentials(normalize_url(str(config["server"])), str(config["token"]))
    except (OSError, KeyError, ValueError) as error:
        raise NotConfiguredError(f"{path} cannot be read ({error}). Sign in again: hekla login URL") from error


def _local_server(home: Path) -> ServerCredentials | None:
    """The server of a data folder on this machine, which holds a token file and a lock with the address."""
    try:
        token = (home / "cli-token").read_text(encoding="utf-8").strip()
    except OSError:
        return None
    try:
        url = str(json.loads((home / "lock").read_text(encoding="utf-8"))["url"])
    except (OSError, ValueError, KeyError, TypeError):
        url = _USUAL
    return ServerCredentials(normalize_url(url), token)
