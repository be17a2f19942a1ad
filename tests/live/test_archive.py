"""All logs of a job as one archive, sent in pieces."""

import io
import zipfile
from collections.abc import Iterator

from hekla.lib.zip_stream import zipped


def test_archive_is_streamed_and_complete() -> None:
    read: list[str] = []

    def pieces(name: str) -> Iterator[bytes]:
        for number in range(3):
            read.append(f"{name}{number}")
            yield f"{name} {number}\n".encode() * 50_000

    sent = zipped([("job/a.log", lambda: pieces("a")), ("job/b.log", lambda: pieces("b")), ("c", lambda: iter(()))])
    first = b"".join(piece for _, piece in zip(range(2), sent, strict=False))
    assert "b2" not in read
    archive = zipfile.ZipFile(io.BytesIO(first + b"".join(sent)))
    assert archive.testzip() is None
    assert archive.namelist() == ["job/a.log", "job/b.log", "c"]
    assert archive.read("job/b.log").endswith(b"b 2\n")
    assert archive.read("c") == b""
