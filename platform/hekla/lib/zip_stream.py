"""A zip archive as a stream: neither disk nor memory ever holds it whole."""

import zipfile
from collections.abc import Callable, Iterable, Iterator

Pieces = Callable[[], Iterator[bytes]]


class _Outlet:
    """A write-only file that buffers its content until it is taken."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, piece: bytes) -> int:
        """Buffer the bytes."""
        self._pieces.append(bytes(piece))
        return len(piece)

    def flush(self) -> None:
        """Do nothing: writes are never delayed."""

    def close(self) -> None:
        """Do nothing: there is no open file."""

    def take(self) -> bytes:
        """The bytes since the last call."""
        data, self._pieces = b"".join(self._pieces), []
        return data


def zipped(files: Iterable[tuple[str, Pieces]], *, is_compressed: bool = True) -> Iterator[bytes]:
    """The files as chunks of a zip archive. Each has a name and a function that returns its content."""
    outlet = _Outlet()
    with zipfile.ZipFile(outlet, "w", zipfile.ZIP_DEFLATED if is_compressed else zipfile.ZIP_STORED) as archive:
        for name, pieces in files:
            with archive.open(name, "w", force_zip64=True) as entry:
                for piece in pieces():
                    entry.write(piece)
                    if data := outlet.take():
                        yield data
            yield outlet.take()
    yield outlet.take()
