"""Terminals over their websocket: pages of one terminal, what a lost page finds again, rights, and limits."""

import asyncio
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from tests.controller.conftest import World, one_machine, world
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.plugin import grant_in_namespace
from tests.support.terminals import TerminalSocket, member, opened_page, play, run_pod

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.audit.sentences import sentence
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.tenancy import services as tenancy
from hekla.backends.streams import Output
from hekla.domain.policies import LifecycleAction
from hekla.lib import clock
from hekla.live import guard
from hekla.live.consumers import TRY_AGAIN, UNKNOWN
from hekla.live.guard import Visitor
from hekla.live.terminals import claims, registry, terminal
from hekla.live.terminals.consumer import ENDED, MAX_FRAME_CHARACTERS, REFUSED
from hekla.live.terminals.output import RollingOutput
from hekla.live.websockets import lifespan

__all__ = ["one_machine", "world"]
only_local = pytest.mark.parametrize("world", ["local"], indirect=True)


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "EVERY_SECONDS", 0.2)
    monkeypatch.setattr(terminal, "SHELL", ("sh",))


def test_old_output_goes_and_offsets_stay() -> None:
    output = RollingOutput(100)
    for number in range(1000):
        output.append(b"%03d" % number)
        assert output.end == 3 * (number + 1)
        assert 70 <= output.end - output.begin <= 100 or number < 33
    every = b"".join(b"%03d" % number for number in range(1000))
    assert output.read(0, 5) == (output.begin, every[output.begin :][:5])
    assert output.read(2997, 99) == (2997, b"999")
    assert output.read(10_000, 99) == (3000, b"")


def test_program_that_prints_byte_by_byte_leaves_the_process_to_others() -> None:
    class Chatter:
        async def receive(self) -> Output:
            return Output(b"x")

    class Page:
        visitor, user = Visitor(1, None), User(pk=1)

    async def scene() -> None:
        shell = terminal.Terminal(Pod(pk=1), Page(), None, on_end=lambda: None)  # type: ignore[arg-type]
        following = asyncio.create_task(shell._follow(Chatter()))  # type: ignore[arg-type]
        for _ in range(10):
            await asyncio.sleep(0)
        assert 1 <= shell.output.end <= 10
        following.cancel()

    asyncio.run(scene())


@only_local
def test_reload_and_second_tab_find_the_same_terminal(world: World) -> None:
    pod = run_pod(world)

    async def scene() -> None:
        async with opened_page(pod, world.alice) as first:
            await first.say("resize", columns=101, rows=31)
            await first.run("stty size; echo $((40 + 2))", "42\r\n")
            assert "31 101" in first.text
            hello, reached = first.messages["hello"], first.offset
            async with opened_page(pod, world.alice) as second:
                assert second.messages["hello"]["terminal"] == hello["terminal"]
                await second.until(lambda: second.text.startswith(first.text))
                await second.run("echo $((50 + 5))", "55\r\n")
            await first.until(lambda: "55\r\n" in first.text)
        async with opened_page(pod, world.alice, f"terminal={hello['terminal']}&offset={reached}") as again:
            assert again.messages["hello"]["offset"] == reached
            await again.until(lambda: "55\r\n" in again.text)
            assert "42" not in again.text
            await again.say("input", data="sleep 100\r")
            await again.until(lambda: "sleep 100" in again.text)
            await asyncio.sleep(0.2)
            await again.run("\x03", "^C")
            await again.say("input", data="exit 7\r")
            await again.until(lambda: "ended" in again.messages)
            assert (again.messages["ended"]["reason"], again.messages["ended"]["exit_code"]) == ("exit", 7)
            assert await again.close_code() == ENDED
        async with opened_page(pod, world.alice, f"terminal={hello['terminal']}&offset={reached}") as new:
            assert new.messages["hello"]["terminal"] != hello["terminal"]
            assert new.messages["hello"]["offset"] == 0

    play(scene)
    events = LoggedEvent.objects.filter(kind__startswith="Terminal").order_by("pk")
    assert [sentence(event, "job talk").text for event in events] == [
        "alice opened a terminal in pod main-0 of job talk.",
        "The terminal of alice in pod main-0 of job talk ended with exit code 7.",
        "alice opened a terminal in pod main-0 of job talk.",
        "alice ended their terminal in pod main-0 of job talk.",
    ]


@only_local
def test_lost_rights_close_the_socket_and_end_the_terminal(world: World) -> None:
    """Of a person who is only a viewer now, of a blocked one, and also of a terminal that no page shows."""
    bob, carol = member(world, "bob", "admin"), member(world, "carol", "admin")
    pod, other = run_pod(world), run_pod(world, name="more")
    acts = {"actor": PLATFORM, "now": clock.now()}

    async def lose_rights() -> None:
        await sync_to_async(tenancy.change_role)(world.tenant, bob, role="viewer", **acts)
        await sync_to_async(accounts.change_user)(carol, {"is_active": False}, password=None, **acts)

    async def scene() -> None:
        async with opened_page(pod, bob) as of_bob, opened_page(pod, carol) as of_carol:
            async with opened_page(other, bob):
                pass
            await of_bob.run("echo $((40 + 2))", "42\r\n")
            await lose_rights()
            async with asyncio.timeout(5):
                for page in (of_bob, of_carol):
                    while (await page.receive_output(5))["type"] != "websocket.close":
                        pass
                while registry.terminals()._open:
                    await asyncio.sleep(0.05)
        refused = TerminalSocket(pod, bob)
        await refused.open()
        assert await refused.close_code() == REFUSED
        await refused.leave()

    play(scene)
    ends = LoggedEvent.objects.filter(kind="TerminalEnded")
    assert [end.payload["reason"] for end in ends] == ["rights"] * 3


@only_local
def test_strangers_viewers_and_pods_that_do_not_run_are_refused(world: World) -> None:
    pod, viewer = run_pod(world, "sleep 1"), member(world, "vera", "viewer")
    stranger = accounts.create_user(username="mallory", password=None, actor=PLATFORM, now=clock.now())
    world.reconcile_until(lambda: Job.objects.get(pk=pod.job_id).is_final)

    async def scene() -> None:
        for user, code in ((stranger, UNKNOWN), (viewer, REFUSED)):
            page = TerminalSocket(pod, user)
            await page.open()
            assert await page.close_code() == code
            await page.leave()
        async with opened_page(pod, world.alice, "language=en") as page:
            assert page.messages["refused"]["text"] == "The pod has ended. Terminals are for running pods."
            assert await page.close_code() == REFUSED

    play(scene)
    assert not LoggedEvent.objects.filter(kind="TerminalOpened").exists()


@only_local
def test_output_is_bounded_and_hostile_input_does_no_harm(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "MAX_BYTES_PER_SECOND", 300_000)
    monkeypatch.setattr(registry, "MAX_OF_PERSON", 1)
    pod, other = run_pod(world), run_pod(world, name="more")

    async def scene() -> None:
        async with opened_page(pod, world.alice) as page:
            for frame in ("[]", "{}", '{"type": 3}', '{"type": "resize", "columns": "x"}', "[" * 5000, "x" * 70_000):
                await page.send_input({"type": "websocket.receive", "text": frame})
            await page.send_input({"type": "websocket.receive", "bytes": b"\xff"})
            await page.say("input", data="#" * MAX_FRAME_CHARACTERS)
            await page.say("resize", columns=10**9, rows=-5)
            await page.run("stty size", "2 500")
            await page.say("input", data="yes\r")
            (shell,) = registry.terminals()._open.values()
            started = asyncio.get_running_loop().time()
            while asyncio.get_running_loop().time() < started + 2:
                await page.receive_message()
            assert page.messages["size"]["columns"] == 500
            assert shell.output.end < 300_000 * 4
            assert shell.output.end - shell.output.begin <= terminal.SCROLLBACK_BYTES
            await page.say("input", data="\x03")
            page.text = ""
            await page.run("echo $((40 + 2))", "42\r\n")
            async with opened_page(other, world.alice, "language=en") as more:
                assert "You have 1 open terminals" in more.messages["refused"]["text"]

    play(scene)


@only_local
def test_keyboard_is_with_one_person(world: World) -> None:
    bob, pod = member(world, "bob", "admin"), run_pod(world)

    def holders(page: TerminalSocket) -> list[str]:
        return [one["name"] for one in page.messages["people"]["people"] if one["holds"]]

    async def scene() -> None:
        async with opened_page(pod, world.alice) as owner:
            await owner.run("echo $((40 + 2))", "42\r\n")
            async with opened_page(pod, bob, f"of={owner.messages['hello']['terminal']}") as other:
                assert (other.messages["hello"]["owner"], other.messages["hello"]["is_own"]) == ("alice", False)
                await other.until(lambda: "42\r\n" in other.text)
                await other.say("input", data="echo bobs\r")
                await other.say("end")
                await owner.run("echo $((50 + 5))", "55\r\n")
                assert "bobs" not in owner.text
                await other.say("take")
                await owner.until(lambda: holders(owner) == ["bob"])
                await owner.say("input", data="echo alices\r")
                await other.run("echo $((60 + 6))", "66\r\n")
                assert "alices" not in other.text
            await owner.until(lambda: len(owner.messages["people"]["people"]) == 1)
            assert holders(owner) == ["alice"]
            while not await sync_to_async(LoggedEvent.objects.filter(kind="TerminalJoined").exists)():
                await asyncio.sleep(0.05)
        async with opened_page(pod, bob, "language=en&of=0") as late:
            assert late.messages["refused"]["text"] == "This terminal has ended."

    play(scene)
    guest = LoggedEvent.objects.get(kind="TerminalJoined")
    assert sentence(guest, "job talk").text == "bob typed in the terminal of alice in pod main-0 of job talk."


@only_local
def test_input_that_no_program_reads_is_dropped_from_one_place_on(world: World) -> None:
    pod, lines = run_pod(world), "x" * 60_000

    async def scene() -> None:
        async with opened_page(pod, world.alice) as page:
            await page.run("stty raw -echo; echo $((40 + 2)); sleep 2; stty sane", "42")
            for _again in range(8):
                await page.say("input", data=lines)
            await page.until(lambda: "full" in page.messages)

    play(scene)


@only_local
def test_one_page_too_many_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "MAX_PAGES", 1)
    pod = run_pod(world)

    async def scene() -> None:
        async with opened_page(pod, world.alice), opened_page(pod, world.alice, "language=en") as more:
            assert more.messages["refused"]["text"].startswith("1 pages show this terminal")

    play(scene)


@only_local
def test_terminal_that_nobody_shows_ends(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("DETACHED_SECONDS", 0.2), ("LOOK_EVERY_SECONDS", 0.1)):
        monkeypatch.setattr(terminal, name, value)
    pod = run_pod(world)

    async def scene() -> None:
        async with opened_page(pod, world.alice) as page:
            await asyncio.sleep(0.5)
            await page.run("echo $((40 + 2))", "42\r\n")
        while registry.terminals()._open:
            await asyncio.sleep(0.05)

    play(scene)
    assert LoggedEvent.objects.get(kind="TerminalEnded").payload["reason"] == "idle"


@only_local
def test_page_that_reaches_another_process_tries_again(world: World) -> None:
    pod, elsewhere = run_pod(world), uuid4()

    async def scene() -> None:
        assert await claims.take(pod.pk, world.alice.pk, elsewhere)
        for query in ("", f"of={elsewhere.hex}"):
            page = TerminalSocket(pod, world.alice, query)
            await page.open()
            assert await page.close_code() == TRY_AGAIN
            await page.leave()
        await claims.release(pod.pk, world.alice.pk, elsewhere)
        async with opened_page(pod, world.alice) as page:
            await page.run("echo $((40 + 2))", "42\r\n")
            assert not await claims.take(pod.pk, world.alice.pk, elsewhere)
            await page.send_input({"type": "websocket.disconnect", "code": 1012, "reason": ""})
            await page.wait(3)
            assert registry.terminals()._open, "a page ends no terminals, whatever code it sends"
            server = ApplicationCommunicator(lifespan, {"type": "lifespan"})
            for part in ("startup", "shutdown"):
                await server.send_input({"type": f"lifespan.{part}"})
                assert await server.receive_output(3) == {"type": f"lifespan.{part}.complete"}
            assert not registry.terminals()._open

    play(scene)
    kinds = LoggedEvent.objects.filter(kind__startswith="Terminal").order_by("pk")
    assert [(one.kind, one.payload.get("reason")) for one in kinds] == [
        ("TerminalOpened", None),
        ("TerminalEnded", "stopped"),
    ]


@only_local
def test_terminal_ends_with_its_pod(world: World) -> None:
    pod = run_pod(world)

    async def scene() -> None:
        async with opened_page(pod, world.alice) as page:
            await page.run("echo $((40 + 2))", "42\r\n")
            abort = {"user": world.alice, "now": clock.now()}
            await sync_to_async(services.command)(pod.job, LifecycleAction.ABORT_JOB, **abort)
            ending = asyncio.create_task(
                sync_to_async(world.reconcile_until)(lambda: Job.objects.get(pk=pod.job_id).is_final)
            )
            await page.until(lambda: "ended" in page.messages)
            assert page.messages["ended"]["reason"] == "pod"
            await ending

    play(scene)


@pytest.mark.kubernetes
@pytest.mark.parametrize("world", ["kubernetes"], indirect=True)
def test_terminal_of_a_kubernetes_pod_needs_the_permission(
    world: World, small_cluster: ControlPlane, granted_namespace: str
) -> None:
    pod = run_pod(world)

    async def refused() -> None:
        async with opened_page(pod, world.alice, "language=en") as page:
            assert "until its operator applies rights-terminals.yaml" in page.messages["refused"]["text"]

    async def scene() -> None:
        async with opened_page(pod, world.alice) as page:
            await page.run("echo $((40 + 2))", "42\r\n")
            await page.say("resize", columns=101, rows=31)
            await page.run("stty size; echo $((50 + 5))", "55\r\n")
            assert "31 101" in page.text
            await page.say("input", data="exit\r")
            await page.until(lambda: "ended" in page.messages)
            assert (page.messages["ended"]["reason"], page.messages["ended"]["exit_code"]) == ("exit", 0)

    play(refused)
    grant_in_namespace(small_cluster, "rights-terminals.yaml", granted_namespace)
    play(scene)
