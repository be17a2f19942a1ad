"""Submits cells and notebooks as jobs, from a session with a pod of another job.

Nothing but the standard library and the client: it runs in pods. `HEKLA_SESSION_JOB` and `HEKLA_SESSION_TASK` name the
job and the task of the session, whose image, environment and resources are the defaults. `HEKLA_CONSOLE` is the
address of the console in a browser.
"""

import json
import os
import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hekla.client.client import FINAL_PHASES, Client
from hekla.client.documents import JobDetail
from hekla.client.texts import translate

RUNNER = Path(__file__).with_name("notebook_runner.py")
_FROM_TASK = ("image", "environment", "env", "resources", "volume_mounts", "runtime_class", "pull_secrets")
_FIRST_LINES, _LAST_LINES = 200, 20
"""Of a log, in the output of a cell."""
_PYTHON = ("sh", "-c", 'exec "$(command -v python || command -v python3)" "$@"', "python")
_GPU = "nvidia.com/gpu"


@dataclass(frozen=True, slots=True)
class Choices:
    """What a person chose for a job; what is empty is as in the session's own job."""

    name: str = ""
    queue: str = ""
    image: str = ""
    environment: str = ""
    cpus: str = ""
    memory: str = ""
    gpus: str = ""


class SubmittedJob:
    """A job submitted from a notebook: `state`, `wait()`, `logs()`, `abort()`. `document`: as REST shows it."""

    def __init__(self, client: Client, document: JobDetail) -> None:
        self._client, self.document = client, document

    def __repr__(self) -> str:
        return f"<job {self.name}: {self.document['phase']}, {self.url}>"

    @property
    def uid(self) -> str:
        """The uid."""
        return self.document["uid"]

    @property
    def name(self) -> str:
        """The name."""
        return self.document["name"]

    @property
    def url(self) -> str:
        """The address of its page, for a browser: pods may reach the console at another one."""
        return f"{os.environ.get('HEKLA_CONSOLE') or self._client.server.url}/jobs/{self.uid}/"

    @property
    def state(self) -> str:
        """Its phase now."""
        self.document = self._client.job(self.uid)
        return self.document["phase"]

    def wait(self, timeout: float | None = None) -> "SubmittedJob":
        """Wait until it ends. Raises WaitTimeoutError after `timeout` seconds; the job goes on."""
        self.document = self._client.wait(self.uid, timeout=timeout)
        return self

    def logs(self) -> list[str]:
        """The lines of its log until now."""
        return list(self._client.logs(self.uid))

    def abort(self) -> "SubmittedJob":
        """Abort it."""
        self.document = self._client.abort(self.uid)
        return self

    def follow(self, write: Callable[[str], None]) -> None:
        """Write its phases and the lines of its log until it ends; of a long log the first and the last lines.

        Interrupt it at will: the job goes on.
        """
        write(f"{self.name}: {translate(self.document['phase'])}")
        self.document = self._client.wait(self.uid, until={"running"})
        if self.document["phase"] not in FINAL_PHASES:
            write(f"{self.name}: {translate(self.document['phase'])}")
        if self.document["pods"]:
            last: deque[str] = deque(maxlen=_LAST_LINES)
            for number, line in enumerate(self._client.logs(self.uid, follow=True)):
                (write if number < _FIRST_LINES else last.append)(line)
            for line in last:
                write(line)
        self.wait()
        write(f"{self.name}: {translate(self.document['phase'])} {self.document['message']}".rstrip())


def submit_code(client: Client, code: str, choices: Choices) -> SubmittedJob:
    """Submit Python code as a job."""
    return _submit(client, {"cell.py": code}, ["cell.py"], choices, "cell")


def submit_notebook(client: Client, path: str, choices: Choices) -> SubmittedJob:
    """Submit a notebook as a job that executes it. The executed notebook is among the files of the job.

    Its outputs are not sent. Raises OSError, ValueError if it is no notebook.
    """
    try:
        notebook = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        reason = error.strerror or str(error)
        raise OSError(translate("{path} cannot be read: {reason}", path=path, reason=reason)) from error
    except ValueError as error:
        raise ValueError(translate("{path} is not a notebook.", path=path)) from error
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
        raise ValueError(translate("{path} is not a notebook.", path=path))
    for cell in notebook["cells"]:
        if cell.get("cell_type") == "code":
            cell |= {"outputs": [], "execution_count": None}
    name = Path(path).name
    files = {name: json.dumps(notebook, ensure_ascii=False), RUNNER.name: RUNNER.read_text(encoding="utf-8")}
    return _submit(client, files, [RUNNER.name, name], choices, Path(path).stem)


def job_spec(
    default: Mapping[str, Any], task: str, files: Mapping[str, str], arguments: Sequence[str], choices: Choices
) -> dict[str, Any]:
    """The spec of a job with one pod, which runs Python with these arguments. Defaults: a task of another job."""
    tasks = {str(one["name"]): one for one in default.get("tasks", ())}
    from_task = {name: value for name in _FROM_TASK if (value := tasks.get(task, {}).get(name))}
    gpu = next((name for name in from_task.get("resources", {}) if name.endswith("/gpu")), _GPU)
    amounts = {"cpu": choices.cpus, "memory": choices.memory, gpu: choices.gpus}
    resources = {**from_task.get("resources", {}), **{name: amount for name, amount in amounts.items() if amount}}
    chosen = {"image": choices.image, "environment": choices.environment}
    one = {
        "name": "main",
        "command": [*_PYTHON, *arguments],
        **from_task,
        **{key: value for key, value in chosen.items() if value},
    }
    one["resources"] = {name: amount for name, amount in resources.items() if str(amount) != "0"}
    mounted = {mount["name"] for mount in from_task.get("volume_mounts", ())}
    volumes = [volume for volume in default.get("volumes", ()) if volume.get("name") in mounted]
    return {
        "name": choices.name,
        "queue": choices.queue or default.get("queue", "default"),
        "tasks": [one],
        "files": {**files},
        **({"volumes": volumes} if volumes else {}),
    }


def _submit(
    client: Client, files: Mapping[str, str], arguments: Sequence[str], choices: Choices, stem: str
) -> SubmittedJob:
    home, task = os.environ.get("HEKLA_SESSION_JOB", ""), os.environ.get("HEKLA_SESSION_TASK", "")
    default = client.job(home)["spec"] if home else {}
    spec = job_spec(default, task, files, arguments, choices)
    spec["name"] = spec["name"] or f"{_label(stem)}-{os.urandom(3).hex()}"
    return SubmittedJob(client, client.submit(spec)["job"])


def _label(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40].strip("-") or "notebook"
