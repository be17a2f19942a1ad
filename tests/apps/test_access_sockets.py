"""The access matrix of WebSockets: every socket, for every role, through the real routes and consumers."""

from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from channels.routing import URLRouter
from django.contrib.auth.models import AnonymousUser
from tests.apps.access_world import World, at_the_limits, make_world
from tests.support.examples import EVERY
from tests.support.websocket import Socket

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.access import ROLES
from hekla.apps.accounts.models import ApiToken, User
from hekla.apps.clusters.models import Node
from hekla.lib import clock
from hekla.live import registry, routing
from hekla.live.consumers import NOT_SIGNED_IN, UNKNOWN
from hekla.live.ssh.consumer import UNREADY
from hekla.live.terminals.consumer import REFUSED
from hekla.pages import registry as features

_CLOSED = {NOT_SIGNED_IN: "sign in", UNKNOWN: "absent", REFUSED: "refused", UNREADY: "ok"}  # the pods are simulated


@pytest.fixture
def world(transactional_db: None) -> World:
    """Committed, because sockets read in threads of their own."""
    return make_world()


def _queries(world: World) -> dict[str, str]:
    """The address of each socket, for rows of the tenant lab."""
    uids = {kind: world.arguments[f"{app}:detail"][0] for kind, app in _APPS.items()}
    params = {kind: f"uid={uid}" for kind, uid in uids.items()}
    params |= {"pod": f"uid={world.job.uid}&pod={world.pod.pk}", "queue": "name=labs-own"}
    params |= {"operations": "page=overview"}
    params |= {"demonstration": "name=gangs", "cluster": "name=sim", "node": f"node={Node.objects.get().pk}"}
    live = {f"live {view}": f"/ws/live/?view={view}&{params.get(view, '')}" for view in registry.names()}
    pods = {"logs": f"/ws/logs/{world.pod.pk}/", "terminal": f"/ws/terminals/{world.pod.pk}/"}
    return {**pods, "ssh": f"/ws/ssh/{world.job.uid}.{world.pod}/", **live}


_APPS = {"alert": "alerts", "job": "jobs", "flow": "flows", "batch": "batches", "schedule": "schedules"}


def _token(user: User) -> ApiToken | None:
    secret = accounts.create_token(user, name="ssh", lifetime=timedelta(hours=1), now=clock.now())
    return accounts.token_in_force(secret, now=clock.now())


async def _answer(address: str, user: User | None) -> str:
    token = await sync_to_async(_token)(user) if user and address.startswith("/ws/ssh/") else None
    socket = Socket(URLRouter(routing.urlpatterns), address, user or AnonymousUser(), token=token)
    await socket.open()
    first = await socket.receive_output(5)
    if token:  # a sentence comes before
        first = await socket.receive_output(5)
    if first["type"] == "websocket.close":
        return _CLOSED[first["code"]]
    await socket.leave()
    return "ok"


async def _answers(address: str, people: dict[str, User | None]) -> dict[str, str]:
    return {role: await _answer(address, user) for role, user in people.items()}


def test_every_socket_is_declared() -> None:
    assert {name.partition(" ")[2] for name in features.sockets()} - {""} == set(registry.names())
    assert len(routing.urlpatterns) == len({name.partition(" ")[0] for name in features.sockets()})


def test_each_role_has_its_declared_verdict(world: World) -> None:
    for number, (name, address) in enumerate(_queries(world).items()):
        verdicts = features.sockets()[name]
        roles = list(ROLES) if number % EVERY == 0 else at_the_limits(verdicts, every=EVERY == 1)
        people = {role: world.roles[role] for role in roles}
        assert async_to_sync(_answers)(address, people) == {role: verdicts[role] for role in roles}, name


def test_job_list_subscribes_to_the_tenants_of_its_reader(world: World) -> None:
    lab, other = f"tenant:{world.people.lab.pk}", f"tenant:{world.people.other.pk}"
    topics_of = {role: registry.find("jobs")[0].topics(user, {}) for role, user in world.roles.items() if user}
    everything = {"manager", "operator", "platform_admin"}
    assert {role: topics & {lab, other} for role, topics in topics_of.items()} == {
        role: {lab, other} if role in everything else {other} if role == "stranger" else {lab}
        for role in ROLES
        if role != "anonymous"
    }
