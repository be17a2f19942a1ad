"""Shared terminals: what an invitation opens and what not, when it ends, and what is recorded."""

import asyncio
import json
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import Client
from django.urls import reverse
from tests.controller.conftest import World, one_machine, world
from tests.support.terminals import TerminalSocket, member, opened_page, play, run_pod

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.audit.sentences import sentence
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs.models import Pod
from hekla.apps.notifications import services as notifications
from hekla.apps.secrets import services as secrets
from hekla.apps.sharing import files, services
from hekla.apps.sharing.models import Guest, OpenTerminal, Recording
from hekla.apps.tenancy import services as tenancy
from hekla.domain.errors import Forbidden, NotFound, Refused
from hekla.domain.sharing import GuestRole
from hekla.lib import asciicast, clock
from hekla.live import guard
from hekla.live.consumers import UNKNOWN
from hekla.live.terminals import recorder, registry, terminal
from hekla.live.terminals.consumer import REFUSED

__all__ = ["one_machine", "world"]
pytestmark = pytest.mark.parametrize("world", ["local"], indirect=True)
PASSWORD = "open-sesame-and-more"


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "EVERY_SECONDS", 0.2)
    monkeypatch.setattr(recorder, "WRITE_EVERY_SECONDS", 0.1)
    monkeypatch.setattr(terminal, "SHELL", ("sh",))


def invite(pod: Pod, person: User, role: GuestRole, *, by: User, accept: bool = True) -> Guest:
    target = OpenTerminal.objects.select_related("pod__job", "owner").get(pod=pod, ended_at=None)
    guest = services.invite(target, person.username, role, hours=1, user=by, now=clock.now())
    if accept:
        services.accept(guest, user=person, now=clock.now())
    return guest


invited = sync_to_async(invite)


async def refusal(pod: Pod, user: User, query: str = "") -> int:
    """The code with which a page is closed at once."""
    page = TerminalSocket(pod, user, f"language=en&{query}")
    await page.open()
    try:
        while (output := await page.receive_output(5))["type"] != "websocket.close":
            pass
        return output["code"]
    finally:
        await page.leave()


async def closes(page: TerminalSocket) -> None:
    async with asyncio.timeout(5):
        while (await page.receive_output(5))["type"] != "websocket.close":
            pass


def recorded(recording: Recording) -> str:
    found = asciicast.events(files.lines(recording.uid))
    return "".join(event.data for event in found if event.code == "o")


def sentences(*kinds: str) -> list[str]:
    return [sentence(one, "job talk").text for one in LoggedEvent.objects.filter(kind__in=kinds).order_by("pk")]


def test_viewer_watches_by_invitation_and_a_peer_types(world: World) -> None:
    vera, paul, pod = member(world, "vera", "viewer"), member(world, "paul", "member"), run_pod(world)
    secrets.keep(pod.job.uid, {"word": PASSWORD})

    async def scene() -> None:
        async with opened_page(pod, world.alice) as owner:
            await owner.run("echo $((40 + 2)) before", "42 before\r\n")
            of = f"of={owner.messages['hello']['terminal']}"
            offered = await invited(pod, vera, GuestRole.OBSERVER, by=world.alice, accept=False)
            assert await refusal(pod, vera, of) == REFUSED, "consent comes first"
            await sync_to_async(services.accept)(offered, user=vera, now=clock.now())
            assert await refusal(pod, vera) == REFUSED, "no terminal of their own"
            async with opened_page(pod, vera, of) as watching:
                hello = watching.messages["hello"]
                assert (hello["may_type"], hello["may_end"], hello["others"]) == (False, False, [])
                await watching.until(lambda: "42 before" in watching.text)
                await owner.until(lambda: owner.messages["people"]["is_recorded"])
                for kind, facts in (("take", {}), ("input", {"data": "echo veras\r"}), ("end", {})):
                    await watching.say(kind, **facts)
                await watching.say("resize", columns=33, rows=9)
                await owner.run("echo $((50 + 5))", "55\r\n")
                await invited(pod, paul, GuestRole.PEER, by=world.alice)
                async with opened_page(pod, paul, of) as typing:
                    await typing.say("take")
                    await typing.run(f"printf '{PASSWORD[:7]}'; sleep 0.1; echo '{PASSWORD[7:]}' $((60 + 6))", "66\r\n")
                    assert [one["may_type"] for one in owner.messages["people"]["people"]] == [True, False]
                    await typing.say("end")
                await watching.until(lambda: "66\r\n" in watching.text)
                assert "veras" not in owner.text + watching.text
                assert PASSWORD not in owner.text, "typed in two parts"
            await owner.say("resize", columns=91, rows=31)
            await owner.run("exit", "")
            await owner.until(lambda: "ended" in owner.messages)

    play(scene)
    recording = Recording.objects.get()
    text = recorded(recording)
    assert "before" not in text, "recorded from the moment it is shared"
    assert "55\r\n" in text
    assert "66\r\n" in text
    assert PASSWORD not in text
    assert recording.people == ["alice", "vera", "paul"]
    assert (recording.size, recording.is_full) == (files.size(recording.uid), False)
    assert (files.folder() / f"{recording.uid.hex}.cast").stat().st_mode & 0o777 == 0o600
    assert sentences("GuestInvited", "GuestAccepted", "GuestEnded", "RecordingStarted", "TerminalJoined") == [
        "alice invited vera to a terminal in pod main-0 of job talk as observer.",
        "vera accepted an invitation to the terminal of alice in pod main-0 of job talk.",
        "vera joined the terminal of alice in pod main-0 of job talk, which is recorded from then on.",
        "alice invited paul to a terminal in pod main-0 of job talk as peer.",
        "paul accepted an invitation to the terminal of alice in pod main-0 of job talk.",
        "paul typed in the terminal of alice in pod main-0 of job talk.",
        "platform ended the invitation of vera to pod main-0 of job talk: nothing is open any more.",
        "platform ended the invitation of paul to pod main-0 of job talk: nothing is open any more.",
    ]
    assert not OpenTerminal.objects.filter(ended_at=None).exists()


def test_invitation_reaches_one_terminal_of_one_pod(world: World) -> None:
    bob, vera = member(world, "bob", "admin"), member(world, "vera", "viewer")
    pod, other = run_pod(world), run_pod(world, name="more")

    async def scene() -> None:
        async with (
            opened_page(pod, world.alice) as hers,
            opened_page(pod, bob) as his,
            opened_page(other, world.alice) as more,
        ):
            of_hers, of_his = hers.messages["hello"]["terminal"], his.messages["hello"]["terminal"]
            target = await sync_to_async(OpenTerminal.objects.select_related("pod__job", "owner").get)(uid=of_hers)
            guest = await sync_to_async(services.invite)(
                target, "vera", GuestRole.OWNER, hours=1, user=world.alice, now=clock.now()
            )
            await sync_to_async(services.accept)(guest, user=vera, now=clock.now())
            for where, query in (
                (pod, f"of={of_his}"),
                (pod, ""),
                (pod, "of=0"),
                (pod, f"of={of_hers}0"),
                (other, f"of={more.messages['hello']['terminal']}"),
                (other, f"of={of_hers}"),
            ):
                assert await refusal(where, vera, query) == REFUSED, query
            async with opened_page(pod, vera, f"of={of_hers}") as page:
                assert page.messages["hello"]["may_end"]
                await page.say("end")
                await hers.until(lambda: "ended" in hers.messages)
                assert hers.messages["ended"]["reason"] == "co_owner"
            assert await refusal(pod, vera, f"of={of_hers}") == REFUSED, "it ended with the terminal"
            async with opened_page(pod, world.alice) as again:
                assert again.messages["hello"]["terminal"] != of_hers
                assert await refusal(pod, vera, f"of={again.messages['hello']['terminal']}") == REFUSED

    play(scene)
    assert "An invited co-owner ended the terminal of alice in pod main-0 of job talk." in sentences("TerminalEnded")


def test_ends_of_an_invitation_close_its_pages_within_seconds(world: World) -> None:
    """Revoked, given back, expired, with the membership, and with that, the account or the role of who invited."""
    names = ("anna", "ben", "cleo", "dan", "emma", "finn", "gina", "hugo", "ida", "jon")
    people = {name: member(world, name, "viewer") for name in names}
    pod, acts = run_pod(world), {"actor": PLATFORM, "now": clock.now()}

    async def scene() -> None:
        async with opened_page(pod, world.alice) as owner:
            of = f"of={owner.messages['hello']['terminal']}"
            guests = {}
            for name in ("anna", "ben", "cleo", "dan", "emma", "hugo", "ida"):
                role = GuestRole.OWNER if name in ("dan", "hugo", "ida") else GuestRole.OBSERVER
                guests[name] = await invited(pod, people[name], role, by=world.alice)
            guests["finn"] = await invited(pod, people["finn"], GuestRole.PEER, by=people["dan"])
            guests["gina"] = await invited(pod, people["gina"], GuestRole.PEER, by=people["hugo"])
            guests["jon"] = await invited(pod, people["jon"], GuestRole.PEER, by=people["ida"])
            past = {"expires_at": clock.now() - timedelta(seconds=1)}
            takers = {
                "anna": lambda: services.revoke(guests["anna"], user=world.alice, now=clock.now()),
                "ben": lambda: services.decline(guests["ben"], user=people["ben"], now=clock.now()),
                "cleo": lambda: Guest.objects.filter(pk=guests["cleo"].pk).update(**past),
                "finn": lambda: services.revoke(guests["dan"], user=world.alice, now=clock.now()),
                "emma": lambda: tenancy.remove_member(world.tenant, people["emma"].pk, **acts),
                "gina": lambda: tenancy.remove_member(world.tenant, people["hugo"].pk, **acts),
                "jon": lambda: accounts.change_user(people["ida"], {"is_active": False}, password=None, **acts),
            }
            for name, take in takers.items():
                async with opened_page(pod, people[name], of) as page:
                    assert "hello" in page.messages, name
                    await sync_to_async(take)()
                    await closes(page)
                assert await refusal(pod, people[name], of) == (UNKNOWN if name == "emma" else REFUSED), name
            await owner.run("echo $((40 + 2))", "42\r\n")

    play(scene)
    services.tidy_guests(now=clock.now())
    assert set(Guest.objects.filter(ended_at=None).values_list("person__username", flat=True)) == set()
    assert "platform ended the invitation of cleo to pod main-0 of job talk: it expired." in sentences("GuestEnded")


def test_who_may_invite_whom(world: World) -> None:
    bob, vera = member(world, "bob", "admin"), member(world, "vera", "viewer")
    mallory = accounts.create_user(username="mallory", password=None, actor=PLATFORM, now=clock.now())
    pod = run_pod(world)

    def questions() -> None:
        target = OpenTerminal.objects.select_related("pod__job", "owner").get()
        common: dict[str, Any] = {"hours": 2, "now": clock.now()}
        for name in ("mallory", "nobody", "alice"):
            with pytest.raises(Refused):
                services.invite(target, name, GuestRole.PEER, user=world.alice, **common)
        for user in (bob, vera, mallory):
            with pytest.raises(Forbidden):
                services.invite(target, "vera", GuestRole.PEER, user=user, **common)
        guest = services.invite(target, "bob", GuestRole.OWNER, user=world.alice, **common)
        with pytest.raises(Refused, match="invited already"):
            services.invite(target, "bob", GuestRole.PEER, user=world.alice, **common)
        with pytest.raises(Forbidden):
            services.invite(target, "vera", GuestRole.PEER, user=bob, **common)
        for user in (world.alice, vera, mallory):
            with pytest.raises(NotFound):
                services.accept(guest, user=user, now=clock.now())
        services.accept(guest, user=bob, now=clock.now())
        longer = services.invite(target, "vera", GuestRole.PEER, hours=24, user=bob, now=clock.now())
        assert longer.expires_at == guest.expires_at
        services.decline(longer, user=vera, now=clock.now())
        with pytest.raises(Refused):
            services.accept(longer, user=vera, now=clock.now())

    async def scene() -> None:
        async with opened_page(pod, world.alice):
            await sync_to_async(questions)()

    play(scene)


def test_full_recording_ends_the_sharing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a guest could fill it first, and act unrecorded then."""
    monkeypatch.setattr(services, "MAX_BYTES", 20_000)
    bob, pod = member(world, "bob", "admin"), run_pod(world)

    async def scene() -> None:
        async with opened_page(pod, world.alice) as owner:
            of = f"of={owner.messages['hello']['terminal']}"
            async with opened_page(pod, bob, of) as page:
                await page.say("take")
                await page.say("input", data="head -c 30000 /dev/zero | tr '\\0' x\r")
                await closes(page)
            assert await refusal(pod, bob, of) == REFUSED
            await owner.run("echo $((40 + 2))", "42\r\n")

    play(scene)
    recording = Recording.objects.get()
    assert recording.is_full
    assert recording.size <= 20_000


def test_terminal_whose_record_cannot_be_written_is_not_shared(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_arguments: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(files, "append", fail)
    bob, pod = member(world, "bob", "admin"), run_pod(world)

    async def scene() -> None:
        async with opened_page(pod, world.alice) as owner:
            assert await refusal(pod, bob, f"of={owner.messages['hello']['terminal']}") == REFUSED
            assert not registry.terminals().of_pod(pod.pk)[0].recorder

    play(scene)
    assert not Recording.objects.exists()


HOSTILE = "<script>alert(1)</script>\x1b]0;evil\x07\x1b]52;c;ZXZpbA==\x07\x1b[8mhidden\u202e"


def make_recording(world: World, pod: Pod) -> Recording:
    row = services.open_terminal(pod.pk, pod.job.uid, user=world.alice, now=clock.now())
    row = OpenTerminal.objects.select_related("pod__job", "owner").get(pk=row.pk)
    made = services.begin_recording(row, (90, 30), user=world.alice, now=clock.now())
    for at, text in ((0.5, "one\r\n"), (2.5, f"{HOSTILE}\r\n"), (60.0, "last\r\n")):
        files.append(made.uid, asciicast.CastEvent(at, "o", text).encode())
    services.finish_recording(made, ["alice", "<b>bob"], seconds=60, is_full=False, now=clock.now())
    made.refresh_from_db()
    return made


def test_pages_play_cut_and_delete_a_recording(world: World) -> None:
    pod, client = run_pod(world), Client()
    vera, made = member(world, "vera", "viewer"), make_recording(world, pod)
    address = reverse("sharing:recording", args=[made.uid])
    client.force_login(vera, backend="django.contrib.auth.backends.ModelBackend")
    assert client.get(address).status_code == 403
    client.force_login(world.alice, backend="django.contrib.auth.backends.ModelBackend")
    assert "&lt;b&gt;bob" in client.get(reverse("sharing:of_job", args=[pod.job.uid])).content.decode()
    page = client.get(address).content.decode()
    assert '<a href="#t=2.5">2.5</a>' in page
    assert "&lt;script&gt;alert(1)" in page
    assert "<script>alert" not in page
    assert "\x1b" not in page
    assert "evil" not in page
    assert "\u202e" not in page

    cast = client.get(reverse("sharing:cast", args=[made.uid]))
    assert "attachment" in cast.headers["Content-Disposition"]
    body = b"".join(cast.streaming_content)  # type: ignore[arg-type]
    assert json.loads(body.splitlines()[0])["width"] == 90
    part = client.get(reverse("sharing:cast", args=[made.uid]), headers={"Range": "bytes=5-14"})
    assert (part.status_code, part.content) == (206, body[5:15])
    assert part.headers["Content-Range"] == f"bytes 5-14/{len(body)}"
    beyond = client.get(
        reverse("sharing:cast", args=[made.uid]), headers={"Range": f"bytes={len(body)}-{len(body) + 9}"}
    )
    assert beyond.status_code == 416

    wrong = client.post(reverse("sharing:cut", args=[made.uid]), {"begin": "7", "end": "3"})
    assert "The end must be after the begin." in wrong.content.decode()
    assert 'value="7' in wrong.content.decode()
    beyond_time = client.post(reverse("sharing:cut", args=[made.uid]), {"begin": "1e300", "end": "2e300"})
    assert "The end must be after the begin." in beyond_time.content.decode()
    saved = client.post(reverse("sharing:cut", args=[made.uid]), {"begin": "2", "end": "10"})
    cut = Recording.objects.get(source=made)
    assert saved.headers["Location"] == reverse("sharing:recording", args=[cut.uid])
    assert [event.at for event in asciicast.events(files.lines(cut.uid))] == [0.5]

    client.post(reverse("sharing:delete", args=[made.uid]))
    assert files.size(made.uid) == 0
    assert client.get(address).status_code == 404
    assert sentences("RecordingCut", "RecordingDeleted") == [
        "alice saved a part of a recording of a terminal in pod main-0 of job talk.",
        "alice deleted a recording of the terminal of alice in pod main-0 of job talk.",
    ]
    old = clock.now() + timedelta(days=services.recordings.MAX_DAYS + 1)
    assert services.tidy_recordings(now=old) == 1
    assert files.size(cut.uid) == 0


def test_pages_invite_accept_and_revoke(world: World) -> None:
    vera, pod = member(world, "vera", "viewer"), run_pod(world)
    row = services.open_terminal(pod.pk, pod.job.uid, user=world.alice, now=clock.now())
    hers, guests = Client(), Client()
    hers.force_login(world.alice, backend="django.contrib.auth.backends.ModelBackend")
    guests.force_login(vera, backend="django.contrib.auth.backends.ModelBackend")
    notifications.follow(now=clock.now())
    address = reverse("sharing:terminal", args=[row.uid])
    refused = hers.post(address, {"person": "nobody", "role": "peer", "hours": "3"}).content.decode()
    assert "No person of this name can see the job." in refused
    assert 'value="nobody"' in refused
    assert hers.post(address, {"person": "vera", "role": "peer", "hours": "3"}).status_code == 302
    assert "not accepted yet" in hers.get(address).content.decode()
    guest = Guest.objects.get()
    place = f"{reverse('jobs:terminal', args=[pod.job.uid, pod.pk])}?of={row.uid.hex}"
    assert guests.get(place).status_code == 403
    assert "Accept" in guests.get(reverse("sharing:mine")).content.decode()
    notifications.follow(now=clock.now())
    notified = guests.get(reverse("notifications:list")).content.decode()
    assert f'<a href="{reverse("sharing:mine")}">' in notified
    assert "alice invites you to a terminal of job talk." in notified
    guests.post(reverse("sharing:accept", args=[guest.uid]))
    entered = guests.post(reverse("sharing:enter", args=[guest.uid]))
    assert entered.headers["Location"] == place
    assert guests.get(place).status_code == 200
    assert guests.get(place.partition("?")[0]).status_code == 403
    hers.post(reverse("sharing:revoke", args=[guest.uid]))
    assert guests.get(place).status_code == 403
    assert "Nothing is shared with you" in guests.get(reverse("sharing:mine")).content.decode()
