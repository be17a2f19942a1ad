"""All logs of a job as one archive, made while it is sent: neither disk nor memory takes any of it in whole."""

import zipfile
from collections.abc import Callable, Iterable, Iterator

Pieces = Callable[[], Iterator[bytes]]


class _Outlet:
    """A file that can only be written to, and emptied."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, piece: bytes) -> int:
        """Keep it until it is taken."""
        self._pieces.append(bytes(piece))
        return len(piece)

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """Nothing is open."""

    def take(self) -> bytes:
        """What was written since."""
        data, self._pieces = b"".join(self._pieces), []
        return data


def zipped(files: Iterable[tuple[str, Pieces]]) -> Iterator[bytes]:
    """The files, each by its name and a way to its bytes, as a zip archive in pieces."""
    outlet = _Outlet()
    with zipfile.ZipFile(outlet, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, pieces in files:
            with archive.open(name, "w", force_zip64=True) as entry:
                for piece in pieces():
                    entry.write(piece)
                    if data := outlet.take():
                        yield data
            yield outlet.take()
    yield outlet.take()
