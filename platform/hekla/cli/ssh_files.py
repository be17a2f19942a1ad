"""The files for `ssh` in the configuration folder of the command: its settings, and the host key of the console."""

import hashlib
import os
import shlex
import sys
from pathlib import Path

import click

from hekla.cli.servers import ServerOptions

SUFFIX = ".hekla"
_ALIAS = "hekla"


def write_config(choice: ServerOptions, *, is_included: bool) -> Path:
    """Write the settings for hosts with the suffix. Returns the path. Raises NotConfiguredError without a token.

    `is_included`: the file that people include in their own settings. Another one leads to this server only, and leaves
    that file as it is.
    """
    url = choice.server().url
    words = [sys.executable, "-P", "-m", "hekla.cli", "--server", url]
    if choice.home is not None:
        words += ["--home", str(choice.home.absolute())]
    command = " ".join(_quoted(word) for word in words)
    path = _folder() / ("ssh_config" if is_included else f"ssh_config.{_mark(command)}")
    _write(
        path,
        f"""\
# Written by `hekla ssh-config`. A change here is lost with the next call.
# The name of a host becomes part of a command line. Old versions of ssh take any name, also from a hostile link.
Host *{SUFFIX} "!*'*"
  ProxyCommand {command} ssh-proxy '%h'
  User hekla
  HostKeyAlias {_ALIAS}
  UserKnownHostsFile "{_known_hosts(url)}"
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
  UpdateHostKeys no
  PreferredAuthentications none
  PubkeyAuthentication no
  ServerAliveInterval 15
  ServerAliveCountMax 2
  Ciphers aes128-gcm@openssh.com,aes256-gcm@openssh.com
  ForwardAgent no
  ForwardX11 no
""",
    )
    return path


def write_known_host(url: str, key: str) -> None:
    """Note the public host key of this console."""
    line = f"{_ALIAS} {key}\n"
    path = _known_hosts(url)
    if not path.exists() or path.read_text(encoding="utf-8") != line:
        _write(path, line)


def include(config: Path) -> tuple[str, Path, bool]:
    """The line that includes the settings, the user's own configuration of `ssh`, and whether it has the line."""
    line, own = f'Include "{config}"', Path.home() / ".ssh" / "config"
    text = own.read_text(encoding="utf-8", errors="replace") if own.exists() else ""
    return line, own, line in (known.strip() for known in text.splitlines())


def install(line: str, own: Path) -> None:
    """Put the line at the begin of the user's own configuration: after a `Host` it would belong to that host only."""
    own.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    target = own.resolve()  # it may be a link to a folder of settings
    text = target.read_bytes() if target.exists() else b""
    _write(target, f"{line}\n\n".encode() + text if text else f"{line}\n")


def _known_hosts(url: str) -> Path:
    """For each console its own: connections to several may begin at the same time."""
    return _folder() / f"ssh_known_hosts.{_mark(url)}"


def _mark(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _folder() -> Path:
    folder = Path(click.get_app_dir("hekla"))
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _quoted(word: str) -> str:
    """For the shell that `ssh` starts, and with its `%` doubled."""
    return shlex.quote(word).replace("%", "%%")


def _write(path: Path, content: str | bytes) -> None:
    """Replace the file at once: another `ssh` may read it now."""
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content if isinstance(content, bytes) else content.encode())
    new.replace(path)
