"""Live subscriptions: one rendering for all pages with the same audience, and none with the rights of another user."""

from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError, connections
from django.utils.translation import get_language
from tests.live.test_pages import record_event
from tests.support.live_views import add_view
from tests.support.websocket import Socket

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.event_log.services import PLATFORM, unit_of_work
from hekla.apps.notifications import services as notifications
from hekla.apps.notifications.models import Notification
from hekla.apps.notifications.signals import changed_for
from hekla.apps.tenancy import services as tenancy
from hekla.apps.tenancy.models import Membership, Tenant
from hekla.apps.tenancy.selectors import own
from hekla.domain.errors import NotFound
from hekla.lib import clock
from hekla.live import guard, registry
from hekla.live.consumers import TRY_AGAIN, PageConsumer
from hekla.live.registry import LiveView, private_audience

pytestmark = pytest.mark.django_db(transaction=True)
_rendered: list[str] = []
Open = Callable[..., Any]


def _tenants(user: User, _params: registry.Params) -> tuple[str, ...]:
    found = tuple(sorted(own(user).values_list("slug", flat=True)))
    if not found:
        raise NotFound("There is nothing.")
    return found


def _render(user: User, params: registry.Params) -> str:
    _rendered.append(user.username)
    return " ".join(_tenants(user, params))


def _topics(user: User, params: registry.Params) -> frozenset[str]:
    return frozenset({"job:7", *_tenants(user, params)})


@pytest.fixture(autouse=True)
def _views(monkeypatch: pytest.MonkeyPatch) -> None:
    _rendered.clear()
    monkeypatch.setattr(guard, "EVERY_SECONDS", 0.2)
    add_view(monkeypatch, "shared", (LiveView(_topics, _render, _tenants),))
    add_view(monkeypatch, "own", (LiveView(_topics, _render, private_audience),))


def _person(name: str) -> User:
    return accounts.create_user(username=name, password=None, actor=PLATFORM, now=clock.now())


def _tenant(slug: str, *members: User) -> Tenant:
    tenant = tenancy.create(slug=slug, name=slug, actor=PLATFORM, now=clock.now())
    Membership.objects.bulk_create(Membership(tenant=tenant, user=user, since=clock.now()) for user in members)
    return tenant


@pytest.fixture
def people() -> dict[str, User]:
    """Alice and Bob are in one tenant, Carol is in another."""
    found = {name: _person(name) for name in ("alice", "bob", "carol")}
    _tenant("lab", found["alice"], found["bob"])
    _tenant("field", found["carol"])
    return found


@pytest.fixture
async def open_page() -> AsyncIterator[Open]:
    pages: list[Socket] = []

    async def connect(view: str, user: User, **scope: Any) -> Socket:
        page = Socket(
            PageConsumer.as_asgi(), f"/ws/live/?view={view}&since={await record_event('job:0')}", user, **scope
        )
        await page.open()
        pages.append(page)
        assert (await page.message())["type"] == "hello"
        return page

    yield connect
    for page in pages:
        await page.leave()
    await sync_to_async(connections.close_all)()


async def _next_rendering(page: Socket) -> str:
    """The next rendering of the page itself, without the bell, which a change of rights also updates."""
    while (message := await page.message())["type"] == "aside":
        pass
    return message["html"]


async def test_pages_of_one_audience_are_rendered_once(open_page: Open, people: dict[str, User]) -> None:
    pages = [await open_page("shared", people[name]) for name in ("alice", "bob") * 10]
    await record_event()
    assert {await _next_rendering(page) for page in pages} == {"lab"}
    assert len(_rendered) == 1


async def test_each_audience_has_its_own_rendering(open_page: Open, people: dict[str, User]) -> None:
    pages = {name: await open_page("shared", user) for name, user in people.items()}
    await record_event()
    assert {name: await _next_rendering(page) for name, page in pages.items()} == {
        "alice": "lab",
        "bob": "lab",
        "carol": "field",
    }
    assert len(_rendered) == 2


async def test_private_view_is_rendered_for_each_user(open_page: Open, people: dict[str, User]) -> None:
    pages = [await open_page("own", people[name]) for name in ("alice", "bob", "alice")]
    await record_event()
    assert [await _next_rendering(page) for page in pages] == ["lab"] * 3
    assert sorted(_rendered) == ["alice", "bob"]


async def test_each_language_has_its_own_rendering(open_page: Open, people: dict[str, User]) -> None:
    pages = [await open_page(view, people["alice"]) for view in ("shared", "shared&language=zh-hans")]
    await record_event()
    assert [await _next_rendering(page) for page in pages] == ["lab"] * 2
    assert len(_rendered) == 2


@pytest.mark.parametrize(
    ("query", "language"),
    [("&language=zh-hans", "zh-hans"), ("&language=en", "en"), ("", "en"), ("&language=tlh", "en")],
)
async def test_updates_have_the_language_of_the_page(
    open_page: Open, people: dict[str, User], monkeypatch: pytest.MonkeyPatch, query: str, language: str
) -> None:
    """The browser's preferred language decides for the page, without a cookie that the socket could read."""
    view = LiveView(lambda *_: frozenset({"job:7"}), lambda *_: str(get_language()))
    add_view(monkeypatch, "language", (view,))
    page = await open_page(f"language{query}", people["alice"])
    await record_event()
    assert await _next_rendering(page) == language


async def test_new_rights_are_not_shared_with_others(
    open_page: Open, people: dict[str, User], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also before the guard checks again: the rendering of a user with new rights is not sent to others."""
    monkeypatch.setattr(guard, "EVERY_SECONDS", 60)
    monkeypatch.setattr("hekla.live.hub.RIGHTS_EVENTS", frozenset())
    pages = {name: await open_page("shared", people[name]) for name in ("alice", "bob")}
    for name in pages:
        await sync_to_async(_tenant)(f"secret-of-{name}", people[name])
    await record_event()
    renderings = {name: await _next_rendering(page) for name, page in pages.items()}
    assert renderings == {"alice": "lab secret-of-alice", "bob": "lab secret-of-bob"}


async def test_parts_of_a_page_are_sent_separately(
    open_page: Open, people: dict[str, User], monkeypatch: pytest.MonkeyPatch
) -> None:
    def own_topic(user: User, _params: registry.Params) -> frozenset[str]:
        return frozenset({f"owner:{user.pk}"})

    parts = LiveView(own_topic, _render), LiveView(_topics, _render, _tenants)
    add_view(monkeypatch, "parts", parts)
    pages = {name: await open_page("parts", people[name]) for name in ("alice", "bob")}
    await record_event(f"owner:{people['alice'].pk}")
    assert (await pages["alice"].message())["part"] == 0
    await record_event()
    assert {name: (await page.message())["part"] for name, page in pages.items()} == {"alice": 1, "bob": 1}
    assert len(_rendered) == 2


async def test_audience_is_checked_again_before_rendering(
    open_page: Open, people: dict[str, User], monkeypatch: pytest.MonkeyPatch
) -> None:
    """For example, a queue that is closed to a tenant: no role changed, and yet its members may not see it any more."""
    readers = {"alice", "bob"}

    def may_read(user: User, _params: registry.Params) -> bool:
        return user.username in readers

    def render(user: User, params: registry.Params) -> str:
        return "the queue" if may_read(user, params) else "nothing"

    view = LiveView(
        lambda _user, _params: frozenset({"queues"}), render, may_read, audience_topics=frozenset({"queues"})
    )
    add_view(monkeypatch, "queue?", (view,))
    pages = {name: await open_page("queue?", people[name]) for name in ("alice", "bob")}
    readers.remove("bob")
    await record_event("queues")
    renderings = {name: await _next_rendering(page) for name, page in pages.items()}
    assert renderings == {"alice": "the queue", "bob": "nothing"}


async def test_bell_is_sent_to_every_page_of_its_user(open_page: Open, people: dict[str, User]) -> None:
    pages = {name: await open_page("shared", people[name]) for name in ("alice", "bob")}

    def notify() -> None:
        with unit_of_work():
            facts = {"job_uid": uuid4(), "job_name": "train", "tenant_id": Tenant.objects.get(slug="lab").pk}
            Notification.objects.create(
                user=people["alice"], key="1", moment="failed", at=clock.now(), facts={}, in_page=True, **facts
            )
            changed_for(people["alice"].pk)

    await sync_to_async(notify)()
    message = await pages["alice"].message()
    assert message["type"] == "aside"
    assert ">1</b>" in message["html"]
    newest = (await sync_to_async(Notification.objects.get)()).pk
    await sync_to_async(notifications.mark_read)(people["alice"], up_to=newest, now=clock.now())
    assert "bell-count" not in (await pages["alice"].message())["html"]
    assert await pages["bob"].receive_nothing(timeout=0.2)


async def test_open_page_shows_a_new_tenant(open_page: Open, people: dict[str, User]) -> None:
    page = await open_page("shared", people["alice"])
    await sync_to_async(_tenant)("atelier", people["alice"])
    assert await _next_rendering(page) == "atelier lab"
    await record_event("atelier")
    assert await _next_rendering(page) == "atelier lab"


async def test_lost_access_closes_only_pages_of_that_user(open_page: Open, people: dict[str, User]) -> None:
    pages = {name: await open_page("shared", people[name]) for name in ("alice", "bob")}
    await sync_to_async(Membership.objects.filter(user=people["alice"]).delete)()
    assert await pages["alice"].message() == {"type": "gone"}
    await record_event()
    assert await _next_rendering(pages["bob"]) == "lab"


async def test_inactive_tenant_closes_all_pages(open_page: Open, people: dict[str, User]) -> None:
    pages = [await open_page("shared", people[name]) for name in ("alice", "bob", "bob")]
    await sync_to_async(Tenant.objects.filter(slug="lab").update)(is_active=False)
    await record_event()
    assert [await page.message() for page in pages] == [{"type": "gone"}] * 3


async def test_page_is_closed_for_retry_during_a_database_outage(
    open_page: Open, people: dict[str, User], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = await open_page("shared", people["alice"])

    def down(*_args: Any) -> None:
        raise OperationalError("The database is away.")

    monkeypatch.setattr("hekla.live.subscriptions.resolve", down)
    await sync_to_async(_tenant)("atelier", people["alice"])
    assert await page.close_code() == TRY_AGAIN


async def test_guard_query_count_is_constant(
    open_page: Open, people: dict[str, User], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "EVERY_SECONDS", 60)
    for user in people.values():
        await open_page("own", user)
    running_guard = guard.guard()
    visitors = tuple(running_guard._sockets)

    def queries() -> int:
        from django.db import connection
        from django.test.utils import CaptureQueriesContext

        with CaptureQueriesContext(connection) as captured:
            guard._look_up(visitors, {})
        return len(captured)

    assert len(visitors) == 3
    assert await sync_to_async(queries)() <= 7
