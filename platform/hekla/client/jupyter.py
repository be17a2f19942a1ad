"""An extension of Jupyter Server in sessions: submits a notebook for the button of JupyterLab."""

import asyncio
import json
from pathlib import Path
from typing import Any

from jupyter_server.base.handlers import APIHandler
from jupyter_server.utils import url_path_join
from tornado.web import authenticated

from hekla.client.client import Client
from hekla.client.errors import ClientError
from hekla.client.notebooks import Choices, submit_notebook
from hekla.client.texts import texts


class SubmitHandler(APIHandler):  # type: ignore[misc]
    """`POST hekla/submit`: `path` of a notebook, and choices. Answers with the name and the address of the job.

    `GET`: the words of the button in the person's language, by their English ones.
    """

    @authenticated  # type: ignore[untyped-decorator]
    async def get(self) -> None:
        """Answer with them; none in English."""
        self.finish(texts())

    @authenticated  # type: ignore[untyped-decorator]
    async def post(self) -> None:
        """Submit it. 400 with the reason if it is refused."""
        try:
            values = json.loads(self.request.body)
            path = Path(self.settings["server_root_dir"]).expanduser() / str(values.pop("path")).lstrip("/")
            self.finish(await asyncio.to_thread(_submit, path, Choices(**values)))
        except (ClientError, OSError, LookupError, TypeError, ValueError) as error:
            self.set_status(400)
            self.finish({"message": str(error)})


def _submit(path: Path, choices: Choices) -> dict[str, str]:
    with Client() as client:
        job = submit_notebook(client, str(path), choices)
        return {"name": job.name, "url": job.url}


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    """Jupyter Server calls it."""
    return [{"module": "hekla.client.jupyter"}]


def _load_jupyter_server_extension(server: Any) -> None:  # noqa: ANN401
    """Add the handler. Jupyter Server calls it."""
    address = url_path_join(server.web_app.settings["base_url"], "hekla/submit")
    server.web_app.add_handlers(".*$", [(address, SubmitHandler)])
