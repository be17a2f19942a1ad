"""The same explanation of a pending job on pages, in REST and on the command line, as each reader may see it."""

import re
from datetime import timedelta

from django.test import Client
from django.utils.html import escape
from pytest_django.live_server_helper import LiveServer
from tests.cli.conftest import hekla
from tests.controller.conftest import World
from tests.simulation.conftest import WorldFactory, settle, spec, submit

from hekla.apps.accounts import services as accounts
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job
from hekla.apps.tenancy import services as tenancy
from hekla.domain.policies import LifecycleAction
from hekla.lib import clock
from hekla.simulation import descriptions, what_if

SENTENCE = "Waiting for 2 CPU. 0.5 of 4 CPU are free."


def waiting_job(found: WorldFactory) -> tuple[World, Job]:
    """Alice's job waits for one of another tenant, and for one of her own that ends within ten minutes."""
    world, now = found({}), clock.now()
    theirs = tenancy.create(slug="theirs", name="Theirs", actor=PLATFORM, now=now)
    charlie = accounts.create_user(username="charlie", password=None, actor=PLATFORM, now=now)
    tenancy.add_member(theirs, charlie, "admin", actor=PLATFORM, now=now)
    submit(world, spec("mine", cpu="500m", active_deadline_seconds=600))
    services.submit(spec=spec("secret", replicas=3), tenant=theirs, user=charlie, now=now)
    job = submit(world, spec("waits", cpu="2"))
    settle(world)
    job.refresh_from_db()
    draft = what_if.predict_draft(spec(cpu="2"), tenant=theirs, user=charlie)
    held = "Job secret holds 3 CPU. 1 job of other tenants holds 0.5 CPU."
    assert held in descriptions.sentences(draft, clock.now())
    return world, job


def test_pages_rest_and_the_command_line_say_the_same(found: WorldFactory, live_server: LiveServer) -> None:
    world, job = waiting_job(found)
    client, address = Client(), f"/jobs/{job.uid}/"
    client.force_login(world.alice)
    page = client.get(address).content.decode()
    notice = page[page.index('id="job-waiting"') :].partition("<c-")[0]
    assert notice.count(SENTENCE) >= 1
    assert [caption for caption in re.findall(r"<figcaption>(.*?)</figcaption>", page) if SENTENCE in caption] == []
    for place in ("/", "/jobs/", f"/queues/{world.queue.name}/"):
        assert escape(SENTENCE) in client.get(place).content.decode(), place
    token = accounts.create_token(world.alice, name="cli", lifetime=timedelta(hours=1), now=clock.now())
    output = hekla("--server", live_server.url, "--token", token, "job", "show", "waits").output
    assert f"Pending    {SENTENCE}" in output
    for held in ("1 job of other tenants holds 3 CPU.", "Job mine holds 0.5 CPU for at most 10 min more."):
        assert held in output
        assert held in client.get(f"{address}unblock/").content.decode()


def test_nothing_is_explained_while_the_job_is_being_aborted(found: WorldFactory) -> None:
    world, job = waiting_job(found)
    services.command(job, LifecycleAction.ABORT_JOB, user=world.alice, now=clock.now())
    job.refresh_from_db()
    Job.objects.filter(pk=job.pk).update(phase="aborting", waiting=job.waiting or [REASON])
    client = Client()
    client.force_login(world.alice)
    for place in (f"/jobs/{job.uid}/", "/jobs/", f"/jobs/{job.uid}/unblock/"):
        text = client.get(place).content.decode()
        assert "are free" not in re.sub(r'(?s)<[^>]* id="job-(ribbon|timeline)".*', "", text), place


REASON = {
    "cause": "capacity",
    "action": "allocate",
    "plugin": "resources",
    "code": "no_node_fits",
    "need": {"cpu": "2"},
    "have": {"cpu": "500m"},
    "tasks": 1,
    "nodes": {"insufficient cpu": 1},
    "ever": True,
    "most": {"cpu": "4"},
    "free": {"cpu": "500m"},
    "fitting": 0,
    "usable": 1,
}
