"""The version of the static files: a digest of their contents, which is a part of their addresses."""

from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

from hekla.lib import bundles

_PACKAGES = ("djangorestframework",)
"""Their files are served too."""
_LENGTH = 12


def static_version(folder: Path) -> str:
    """The digest of all files in the folder, of their bundler, and of the packages' versions: 12 hexadecimal digits.

    It depends on contents only, so all processes and hosts with the same files have the same addresses.
    """
    digest = sha256(" ".join(map(version, _PACKAGES)).encode())
    digest.update(Path(bundles.__file__).read_bytes())
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(f"\0{path.relative_to(folder)}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:_LENGTH]
