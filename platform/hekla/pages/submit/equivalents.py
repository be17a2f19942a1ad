"""The job of the form as a command, a REST request and a Python program that submit the same job."""

import json
import shlex
from dataclasses import dataclass
from pprint import pformat

from django.utils.translation import gettext as _

from hekla.domain import formats
from hekla.domain.jobspec import JobSpec


@dataclass(frozen=True, slots=True)
class EquivalentRequest:
    """One way to submit the job from outside. `text` contains no token and no secret."""

    title: str
    text: str


def equivalents(spec: JobSpec, tenant: str, console: str) -> list[EquivalentRequest]:
    """The ways to submit this job to the tenant (its short name). `console`: the address without a slash at the end."""
    document = spec.document()
    return [
        EquivalentRequest(_("Command line"), _command(spec, tenant)),
        EquivalentRequest(
            "REST",
            _request(json.dumps(document, indent=2, ensure_ascii=False), f"{console}/api/v1/jobs?tenant={tenant}"),
        ),
        EquivalentRequest("Python", _program(document, tenant, console)),
    ]


def _command(spec: JobSpec, tenant: str) -> str:
    file = f"{spec.name}.yaml"
    manifest = _as_input(formats.dump_whole(spec))
    return f"cat > {file} {manifest}\nhekla job submit --tenant {shlex.quote(tenant)} {file}\n"


def _request(document: str, address: str) -> str:
    head = f'curl -X POST {shlex.quote(address)} \\\n  -H "Authorization: Bearer $HEKLA_TOKEN" \\\n'
    return f"{head}  -H 'Content-Type: application/json' --data-binary @- {_as_input(document)}\n"


def _program(document: dict[str, object], tenant: str, console: str) -> str:
    job = pformat(document, sort_dicts=False, width=100)
    return (
        "import os\n\nfrom hekla.client import Client\n\n"
        f"job = {job}\n"
        f'with Client({console!r}, os.environ["HEKLA_TOKEN"]) as client:\n'
        f"    print(client.submit(job, tenant={tenant!r}))\n"
    )


def _as_input(text: str) -> str:
    """The text as a here-document of the shell, which changes nothing in it."""
    lines, end = text.rstrip("\n").split("\n"), "END"
    while end in lines:
        end += "_"
    return "\n".join([f"<<'{end}'", *lines, end])
