"""Starts a server of SFTP in a pod: that of OpenSSH, if the image has it, else our own for Python.

A shell looks for one and prints a letter, which tells which one it is. Our own is sent as the first bytes of its input:
command lines on Kubernetes are parts of addresses, which must not be long.
"""

from importlib.resources import files

from hekla.backends.base import BackendError
from hekla.backends.streams import PodCommand

NONE_FOUND = "The image of the pod has neither an SFTP server nor Python, so SFTP is not possible. Try “scp -O” or rsync."
_OPENSSH, _OWN = b"o", b"p"
_PLACES = (
    *("/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server", "/usr/lib/ssh/sftp-server"),
    *("/usr/libexec/sftp-server", "/usr/lib/sftp-server"),
)
_PROGRAM = (files("hekla.live.ssh") / "sftp_server.py").read_bytes()
_LOADER = "import sys; exec(compile(sys.stdin.buffer.read(int(sys.argv[1])), 'sftp', 'exec'))"
_SCRIPT = f"""\
for place in {" ".join(_PLACES)}; do
  if [ -x "$place" ]; then printf {_OPENSSH.decode()}; exec "$place"; fi
done
for name in python3 python; do
  if command -v "$name" >/dev/null 2>&1; then printf {_OWN.decode()}; exec "$name" -c "$0" {len(_PROGRAM)}; fi
done
exit 127"""
COMMAND = ("sh", "-c", _SCRIPT, _LOADER)


async def begin(running: PodCommand) -> None:
    """Make the started command a server of SFTP. Raises BackendError if the pod has none."""
    piece = await running.receive()
    if piece is None or piece.data not in (_OPENSSH, _OWN):
        raise BackendError(NONE_FOUND)
    if piece.data == _OWN:
        await running.send(_PROGRAM)
