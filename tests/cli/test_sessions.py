"""Sessions with running pods on the command line."""

import re

import pytest

from hekla.apps.idleness import services as idleness
from hekla.apps.jobs.models import Pod
from hekla.apps.workbench import presence
from hekla.apps.workbench.models import ToolSession
from hekla.domain.phases import PodPhase
from hekla.lib import clock
from hekla.workbench import idling

pytestmark = pytest.mark.parametrize("world", ["local"], indirect=True)


def test_port_is_opened_listed_and_ended(console, manifest, world):
    assert console("job", "submit", manifest(command="[sleep, '60']")).exit_code == 0
    world.backend_until(lambda: Pod.objects.filter(phase=PodPhase.RUNNING).exists())
    opened = console("session", "open", "talk", "--port", "8080")
    assert re.fullmatch(r"http://[a-z2-7]{26}\.localhost(:\d+)?/\.hekla/enter\?ticket=\S+\n", opened.output)
    listed = console("session", "list", "talk").output
    assert re.search(r"main-0 +port 8080 +alice +ready", listed)
    uid = re.search(r"[0-9a-f-]{36}", listed)[0]
    assert "Nobody has it open." in console("session", "people", "talk", uid).output
    presence.note({(ToolSession.objects.get(uid=uid).pk, world.alice.pk): clock.now()})
    assert re.search(r"alice +yes", console("session", "people", "talk", uid).output)
    assert "has ended" in console("session", "end", "talk", uid).output
    assert "No open sessions." in console("session", "list", "talk").output
    assert console("session", "open", "talk").exit_code == 2
    assert "has no TensorBoard" in console("session", "open", "talk", "--tool", "tensorboard").output
    console("job", "abort", "talk")


def test_activity_of_a_session_is_shown_and_a_session_is_kept(console, manifest, world):
    assert console("job", "submit", manifest(command="[sleep, '60']")).exit_code == 0
    world.backend_until(lambda: Pod.objects.filter(phase=PodPhase.RUNNING).exists())
    console("session", "open", "talk", "--port", "8080")
    uid = re.search(r"[0-9a-f-]{36}", console("session", "list", "talk").output)[0]
    assert "No idle rule is on." in console("session", "activity", "talk", uid).output
    idleness.set_rule(world.tenant, {"ends_sessions": True}, user=world.alice, now=clock.now())
    idling.watch(now=clock.now())
    page_text = console("session", "activity", "talk", uid).output
    assert "In use. Without activity, its owner is warned at" in page_text
    assert re.search(r"cpu +20 % +", page_text)
    assert console("session", "keep", "talk", uid, "--hours", "2", "--because", "It waits.").output.startswith("Kept")
    assert ": It waits." in console("session", "activity", "talk", uid).output
    assert "kept once already" in console("session", "keep", "talk", uid, "--because", "Again.").output
    console("job", "abort", "talk")
