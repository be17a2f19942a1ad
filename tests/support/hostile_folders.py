"""Pod folders in which anything may be, and what must hold while the console reads them."""

import contextlib
import json
import os
import random
import signal
import stat
from collections.abc import Iterator
from pathlib import Path

SECRET = "the-secret-key-of-the-console"
NAMES = (
    "log",
    "log.times",
    "status.json",
    "order.json",
    "stop.json",
    "lock",
    "hosts",
    "work",
    "tmp",
    "volumes",
    "root",
    "shim.log",
)
KINDS = ("link", "folder link", "loop", "pipe", "device link", "device", "sparse", "folder", "text", "bytes", "socket")
TEXTS = (
    "", "{", "[]", "7", '"text"', "null", "NaN", "{}", '{"phase": "running"}', '{"phase": ["running"], "at": 1}',
    '{"phase": "running", "at": 1e400}', '{"phase": "succeeded", "at": "now"}', '{"phase": "failed", "at": -1}',
    '{"phase": "running", "at": 1, "exit_code": {}}', '{"key": 1, "groups": 7, "boot": []}', '{"reason": 1}',
    '{"phase": "failed", "at": 1, "message": "a\\u0000b\\ud800<script>", "exit_code": 1}',
    json.dumps({"phase": "failed", "at": 1, "reason": "r" * 5000, "exit_code": 2**70}),
    json.dumps({"phase": "lost", "at": 99_999_999_999, "message": "m" * 3_000_000}),
    json.dumps({"reason": "\0" * 300, "at": 1, "grace_seconds": -1e300}),
    "[" * 100_000, '{"a":' * 50_000, "\0" * 100, "::metric step=1e999 loss=1e999\n" * 3, "x" * 3_000_000,
    "\x1b]0;title\x07\u202e\r\x00<script>alert(1)</script>\n",
)  # fmt: skip


def hostile(path: Path, secret: Path, chance: random.Random) -> None:
    """Put something unexpected at this path."""
    kind = chance.choice(KINDS)
    if kind == "link":
        path.symlink_to(secret)
    elif kind == "folder link":
        path.symlink_to(secret.parent)
    elif kind == "loop":
        path.symlink_to(path.name)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "device link":
        path.symlink_to(chance.choice(["/dev/zero", "/dev/full", "/dev/tty", "/dev/random"]))
    elif kind == "device":
        _device(path, chance)
    elif kind == "sparse":
        with path.open("wb") as file:
            file.truncate(2**40)
    elif kind == "folder":
        path.joinpath(*["deep"] * chance.randint(0, 40)).mkdir(parents=True)
    elif kind == "text":
        path.write_text(chance.choice(TEXTS))
    elif kind == "bytes":
        path.write_bytes(chance.randbytes(100))
    else:
        os.mknod(path, 0o600 | stat.S_IFSOCK)


def _device(path: Path, chance: random.Random) -> None:
    """A device file that never ends, or a pipe where the tests may not create devices."""
    try:
        os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, chance.choice([5, 7, 8])))
    except PermissionError:
        os.mkfifo(path)


def fill(folder: Path, secret: Path, chance: random.Random) -> None:
    """A pod folder in which some of the console's files are replaced, and odd names are added."""
    folder.mkdir(parents=True)
    (folder / "status.json").write_text(json.dumps({"phase": "running", "at": 1.0}))
    (folder / "log").write_text("plain\n")
    for name in chance.sample(NAMES, chance.randint(1, 5)):
        with contextlib.suppress(FileNotFoundError):
            (folder / name).unlink()
        hostile(folder / name, secret, chance)
    for name in (b"\xff\xfe", b"-rf", b"a\nb", b"x" * 255):
        os.close(os.open(os.fsencode(folder) + b"/" + name, os.O_CREAT))


@contextlib.contextmanager
def no_waiting(seconds: int = 60) -> Iterator[None]:
    """Fails if the block waits: for a pipe without a writer, for a terminal.."""

    def late(_number: int, _frame: object) -> None:
        raise AssertionError("it waits")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
