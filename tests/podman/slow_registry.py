"""A registry whose only image arrives so slowly that its pull can be watched."""

import hashlib
import io
import json
import os
import tarfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LAYER_BYTES = 16 * 2**20
_CHUNK_BYTES, _CHUNK_SECONDS = 32 * 1024, 0.05
_MANIFEST, _CONFIG, _LAYER = (
    f"application/vnd.oci.image.{what}" for what in ("manifest.v1+json", "config.v1+json", "layer.v1.tar")
)


@contextmanager
def slow_registry() -> Iterator[str]:
    """The name of its image."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(*_image()))
    thread = threading.Thread(target=server.serve_forever, name="slow registry", daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}/slow:1"
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()


def _image() -> tuple[bytes, dict[str, bytes]]:
    """The manifest, and the blobs by their digests."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        member = tarfile.TarInfo("noise")
        member.size = LAYER_BYTES
        archive.addfile(member, io.BytesIO(os.urandom(LAYER_BYTES)))
    layer = buffer.getvalue()
    root = {"type": "layers", "diff_ids": [_digest(layer)]}
    config = json.dumps({"architecture": "amd64", "os": "linux", "config": {}, "rootfs": root}).encode()
    manifest = {"schemaVersion": 2, "mediaType": _MANIFEST, "config": _part(_CONFIG, config), "layers": []}
    manifest["layers"] = [_part(_LAYER, layer)]
    return json.dumps(manifest).encode(), {_digest(blob): blob for blob in (config, layer)}


def _part(kind: str, blob: bytes) -> dict[str, object]:
    return {"mediaType": kind, "digest": _digest(blob), "size": len(blob)}


def _digest(blob: bytes) -> str:
    return f"sha256:{hashlib.sha256(blob).hexdigest()}"


def _handler(manifest: bytes, blobs: dict[str, bytes]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.rpartition("/")[2]
            if "/manifests/" in self.path:
                self._answer(_MANIFEST, manifest)
            elif name in blobs:
                self._answer("application/octet-stream", blobs[name])
            else:
                self._answer("application/json", b"{}")

        do_HEAD = do_GET

        def _answer(self, kind: str, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "HEAD":
                return
            with suppress(OSError):  # the pull was given up
                for start in range(0, len(body), _CHUNK_BYTES):
                    self.wfile.write(body[start : start + _CHUNK_BYTES])
                    time.sleep(_CHUNK_SECONDS)

        def log_message(self, *_arguments: object) -> None:
            """Nothing."""

    return Handler
