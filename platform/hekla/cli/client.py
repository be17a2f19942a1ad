"""Speaking to the console: requests in, documents out, and every failure as a sentence."""

from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import click
import httpx

from hekla.cli.servers import Choice, Server

_TIMEOUT = httpx.Timeout(40, connect=5)
_LOOPBACK = {"127.0.0.1", "localhost", "::1"}


class Failure(click.ClickException):
    """What happened, and where there are any, the fields that are wrong."""

    def __init__(self, message: str, errors: list[tuple[str, str]] | None = None) -> None:
        lines = [f"  {path}: {text}" if path else f"  {text}" for path, text in errors or []]
        super().__init__("\n".join([message, *lines]))


class Unreachable(Failure):
    """Nobody answered; later somebody may."""


class Client:
    """One console, for the time of one command."""

    def __init__(self, server: Server) -> None:
        self.server = server
        headers = {"Authorization": f"Bearer {server.token}", "Accept": "application/json"}
        try:
            environment = urlsplit(server.url).hostname not in _LOOPBACK  # a proxy is never asked for this machine
            self._http = httpx.Client(
                base_url=f"{server.url}/api/v1/", headers=headers, timeout=_TIMEOUT, trust_env=environment
            )
        except (httpx.InvalidURL, UnicodeEncodeError, ValueError) as error:
            raise Failure(f"“{server.url}” or its token cannot be used: {error}.") from error

    def close(self) -> None:
        """Let go of the line to the console."""
        self._http.close()

    def get(self, path: str, **query: Any) -> Any:  # noqa: ANN401  (the JSON that came)
        """The document at an address. Raises Failure."""
        return self._send("GET", path, params={name: value for name, value in query.items() if value is not None})

    def post(self, path: str, document: dict[str, Any], **query: Any) -> Any:  # noqa: ANN401
        """Send a document; the answer. Raises Failure."""
        asked = {name: value for name, value in query.items() if value is not None}
        return self._send("POST", path, json=document, params=asked)

    def patch(self, path: str, document: dict[str, Any]) -> Any:  # noqa: ANN401
        """Send what is to change; the answer. Raises Failure."""
        return self._send("PATCH", path, json=document)

    def post_yaml(self, path: str, text: bytes, **query: Any) -> Any:  # noqa: ANN401
        """Send manifests; the answer. Raises Failure."""
        asked = {name: value for name, value in query.items() if value is not None}
        headers = {"Content-Type": "application/yaml"}
        return self._send("POST", path, content=text, headers=headers, params=asked)

    def delete(self, path: str) -> None:
        """Raises Failure."""
        self._send("DELETE", path)

    def pages(self, path: str, most: int, **query: Any) -> list[Any]:  # noqa: ANN401
        """The first `most` entries of a list that comes in pages."""
        page = self.get(path, limit=min(most, 200), **query)
        found = list(page["results"])
        while page["next"] and len(found) < most:
            page = self._send("GET", page["next"])
            found += page["results"]
        return found[:most]

    def job(self, name: str) -> dict[str, Any]:
        """The job of that uid, or the newest of that name. Raises Failure."""
        try:
            uid = UUID(name)
        except ValueError:
            found = self.get("jobs", name=name, limit=1)["results"]
            if not found:
                raise Failure(f"There is no job called “{name}”. `hekla jobs` lists those that you may see.") from None
            uid = found[0]["uid"]
        document: dict[str, Any] = self.get(f"jobs/{uid}")
        return document

    def _send(self, method: str, path: str, **more: Any) -> Any:  # noqa: ANN401
        try:
            answer = self._http.request(method, path, **more)
        except httpx.ConnectError as error:
            raise Unreachable(
                f"Nobody answers at {self.server.url}. Is the console running there? On its own machine "
                "`python3 manage.py up` starts it; another one is named with --server."
            ) from error
        except httpx.TimeoutException as error:
            raise Unreachable(f"{self.server.url} did not answer in time. Try again.") from error
        except (httpx.InvalidURL, httpx.HTTPError, UnicodeError) as error:
            raise Unreachable(f"{self.server.url} cannot be spoken to: {error}.") from error
        return self._read(answer)

    def _read(self, answer: httpx.Response) -> Any:  # noqa: ANN401
        if answer.status_code == httpx.codes.NO_CONTENT:
            return None
        try:
            document = answer.json()
        except ValueError:
            raise self._not_ours(answer) from None
        if answer.is_success:
            return document
        if not isinstance(document, dict) or "detail" not in document:
            raise self._not_ours(answer)
        detail = str(document["detail"])
        if answer.status_code == httpx.codes.UNAUTHORIZED:
            detail += f" Keep the new one with: hekla login {self.server.url}"
        errors = [(str(error["path"]), str(error["message"])) for error in document.get("errors", [])]
        raise Failure(detail, [error for error in errors if not detail.endswith(error[1])])

    def _not_ours(self, answer: httpx.Response) -> Failure:
        if answer.is_server_error:
            return Unreachable(f"The console at {self.server.url} had a fault (status {answer.status_code}).")
        return Failure(f"What answers at {self.server.url} is not Hekla (status {answer.status_code}).")


def client_of(choice: Choice) -> Client:
    """The client for what the command's options say, closed when the command ends. Raises Failure."""
    client = Client(choice.server())
    click.get_current_context().call_on_close(client.close)
    return client
