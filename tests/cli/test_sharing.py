"""Shared terminals and recordings on the command line."""

import re

import pytest

from hekla.apps.accounts import services as accounts
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs.models import Pod
from hekla.apps.sharing import services
from hekla.apps.sharing.models import Guest, JobFork, OpenTerminal
from hekla.apps.tenancy import services as tenancy
from hekla.domain.phases import PodPhase
from hekla.domain.sharing import GuestRole
from hekla.lib import clock

pytestmark = pytest.mark.parametrize("world", ["local"], indirect=True)


def test_invitations_recordings_and_forks(console, manifest, world, tmp_path):
    now = clock.now()
    vera = accounts.create_user(username="vera", password=None, actor=PLATFORM, now=now)
    tenancy.add_member(world.tenant, vera, "viewer", actor=PLATFORM, now=now)
    assert console("job", "submit", manifest(command="[sleep, '60']")).exit_code == 0
    world.backend_until(lambda: Pod.objects.filter(phase=PodPhase.RUNNING).exists())
    pod = Pod.objects.select_related("job").get()
    assert "You have 0 open terminals" in console("share", "invite", "talk", "vera").output
    services.open_terminal(pod.pk, pod.job.uid, user=world.alice, now=now)
    assert "It opens once they accept." in console("share", "invite", "talk", "vera", "--role", "peer").output
    listed = console("share", "list", "talk").output
    assert re.search(r"talk +terminal +alice +vera +peer +offered", listed)
    uid = re.search(r"[0-9a-f-]{36}", listed)[0]
    assert "Unknown invitation" in console("share", "accept", uid).output
    assert "has ended" in console("share", "end", uid).output
    assert "No invitations." in console("share", "list").output

    terminal = OpenTerminal.objects.select_related("pod__job", "owner").get()
    recording = services.begin_recording(terminal, (80, 24), user=world.alice, now=now)
    recorded = console("recording", "list", "talk").output
    assert re.search(r"main-0 +alice", recorded)
    target = tmp_path / "talk.cast"
    assert "Saved" in console("recording", "save", str(recording.uid), str(target)).output
    assert target.read_text().startswith('{"version": 2, "width": 80')
    assert "a fork of talk" in console("job", "fork", "talk").output
    assert JobFork.objects.get().source_id == pod.pk
    assert not Guest.objects.filter(ended_at=None, role=GuestRole.PEER).exists()
    console("job", "abort", "talk")
