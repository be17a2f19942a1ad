"""A small web program as people run it in pods: pages, uploads, a stream of events, and a websocket. See `SCRIPT`."""

import hashlib
import json
from typing import Any

SCRIPT = "import os; from tests.support.tool_server import serve; serve(os.environ['HEKLA_POD_ADDRESS'], {port})"
PAGE = b"""<!doctype html><title>Tool</title><h1>Tool</h1><p id=said>nothing</p><p id=cookies></p><script>
document.cookie = "mine=1";
const socket = new WebSocket(`ws://${location.host}/echo?a=b`);
socket.onopen = () => socket.send("hello");
socket.onmessage = (event) => { document.getElementById("said").textContent = event.data; };
socket.onclose = (event) => { document.getElementById("said").textContent = `closed ${event.code}`; };
fetch("/headers").then((answer) => answer.text()).then((text) => {
  document.getElementById("cookies").textContent = text;
});
</script>"""


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """An ASGI application."""
    if scope["type"] == "websocket":
        await _echo(scope, receive, send)
    elif scope["type"] == "http":
        await _respond(scope, receive, send)
    elif scope["type"] == "lifespan":
        while (message := await receive())["type"] != "lifespan.shutdown":
            await send({"type": f"{message['type']}.complete"})
        await send({"type": "lifespan.shutdown.complete"})


async def _echo(scope: dict[str, Any], receive: Any, send: Any) -> None:
    await receive()
    if scope["path"] == "/refused":
        await send({"type": "websocket.close", "code": 1008})
        return
    offered = scope["subprotocols"]
    await send({"type": "websocket.accept", "subprotocol": offered[0] if offered else None})
    while (message := await receive())["type"] == "websocket.receive":
        if message.get("text") == "close":
            await send({"type": "websocket.close", "code": 4001})
            return
        if message.get("text") is not None:
            await send({"type": "websocket.send", "text": f"echo {message['text']}"})
        else:
            await send({"type": "websocket.send", "bytes": message["bytes"]})


async def _respond(scope: dict[str, Any], receive: Any, send: Any) -> None:
    path, status, body = scope["path"], 200, PAGE
    headers = [(b"content-type", b"text/html"), (b"set-cookie", b"a=b; Domain=localhost; Path=/")]
    if path == "/headers":
        fields = [[name.decode("latin-1"), value.decode("latin-1")] for name, value in scope["headers"]]
        query = scope["query_string"].decode()
        found = {"method": scope["method"], "path": scope["raw_path"].decode(), "query": query, "headers": fields}
        headers, body = [(b"content-type", b"application/json")], json.dumps(found).encode()
    elif path == "/upload":
        digest, size = hashlib.sha256(), 0
        while (message := await receive())["type"] == "http.request":
            digest.update(message.get("body", b""))
            size += len(message.get("body", b""))
            if not message.get("more_body"):
                break
        headers, body = [], f"{size} {digest.hexdigest()}".encode()
    elif path == "/away":
        host = dict(scope["headers"])[b"host"]
        status, headers, body = 302, [(b"location", b"http://" + host + b"/there?x=1")], b""
    elif path == "/events":
        await _events(send)
        return
    elif path == "/nothing":
        status, headers, body = 204, [], b""
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _events(send: Any) -> None:
    """The first event at once, and then nothing more."""
    import asyncio

    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
    await send({"type": "http.response.body", "body": b"data: first\n\n", "more_body": True})
    await asyncio.sleep(600)


def serve(host: str, port: int) -> None:
    """Serve it until the process ends."""
    import uvicorn

    uvicorn.run(application, host=host, port=port, log_level="warning", ws="websockets-sansio")
