"""Export of a job to every manifest format that can hold it, with a list of what is lost."""

import re
from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people

from hekla.apps.accounts.models import User
from hekla.apps.jobs.facts import spec_of
from hekla.apps.jobs.models import Job
from hekla.domain import formats
from hekla.pages.jobs import exports

__all__ = ["db", "people", "shared_people"]

As = Callable[[User], Client]
TASK = {"command": ["python", "train.py"], "resources": {"cpu": "1"}}


@pytest.fixture
def job(people: People) -> Job:
    tasks = [{"name": "master", **TASK}, {"name": "worker", "replicas": 2, "depends_on": {"tasks": ["master"]}, **TASK}]
    return people.submit("net", tasks=tasks, plugins={"pytorch": []}, files={"train.py": "print(1)\n"})


def test_each_format_is_offered_or_refused_with_a_reason(job: Job) -> None:
    offers = {offer.format.word: offer for offer in exports.manifest_options(spec_of(job))}
    assert offers.keys() == {form.word for form in formats.WRITABLE}
    assert (offers["volcano"].losses, offers["volcano"].refusals) == ((), ())
    assert "tasks.1.depends_on" in {loss.partition(":")[0] for loss in offers["pytorchjob"].losses}
    assert "one pod template" in offers["job"].refusals[0]


def test_offered_formats_can_be_downloaded_and_read_back(people: People, as_: As, job: Job) -> None:
    client, page = as_(people.bob), reverse("jobs:export", args=[job.uid])
    text = client.get(page).content.decode()
    assert "tasks.1.depends_on: a PyTorchJob does not support this" in text
    for address in (links := re.findall(r'href="([^"]*\?as=[^"]*)"', text)):
        answer = client.get(address)
        assert "attachment" in answer["Content-Disposition"]
        assert formats.load(answer.content.decode()).spec.name == "net"
    assert any(link.endswith("?as=pytorchjob") for link in links)
    assert formats.load(client.get(reverse("jobs:manifest", args=[job.uid])).content.decode()).spec == spec_of(job)


def test_unsupported_format_is_refused_with_a_reason(people: People, as_: As, job: Job) -> None:
    address = reverse("jobs:manifest", args=[job.uid])
    assert "one pod template" in as_(people.bob).get(address + "?as=job").content.decode()
    assert as_(people.bob).get(address + "?as=nothing").status_code == 404
