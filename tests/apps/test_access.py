"""The access matrix: every route, for every role, has the declared verdict."""

import re
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from http.cookies import SimpleCookie
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import transaction
from django.test import Client
from django.urls import reverse
from tests.apps.access_world import MANIFEST, World, at_the_limits, impersonate, respond, verdict, verdict_for
from tests.apps.shared_world import db, record_browser, shared_world
from tests.support.economy import contexts_only
from tests.support.examples import EVERY

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.access import ROLES, VERBS
from hekla.apps.accounts.scopes import Scope, allows
from hekla.apps.jobs.models import Job
from hekla.lib import clock
from hekla.pages import access_matrix as access
from hekla.pages import registry
from hekla.pages.impersonation import reach

__all__ = ["db", "shared_world"]
pytestmark = pytest.mark.slow
ANSWERS, ROUTES = access.answers(), access.declared()


def _part(name: str) -> str:
    """The part of the platform that a route belongs to. One test covers all routes of a part."""
    return name.rpartition(":")[0] or "project"


TAKE_TOKENS = [name for name in ROUTES if access.scope_for(ANSWERS[name], "get")]


@pytest.fixture
def world(db: None, shared_world: World, settings: Any, tmp_path: Path) -> World:
    settings.API_SIGN_INS_A_MINUTE = settings.API_REQUESTS_A_MINUTE = 100_000
    (tmp_path / "jobs.md").write_text("# Jobs\n")
    settings.HELP_FOLDER = tmp_path
    return shared_world


def test_every_route_is_declared() -> None:
    assert set(ANSWERS) == set(ROUTES)


@pytest.mark.parametrize("part", sorted({_part(name) for name in ROUTES}))
def test_each_role_has_its_declared_verdict(world: World, part: str) -> None:
    """Verbs that are not declared are refused to the admin, too. `tests/api/test_schema.py` shows it for REST.

    By default a part of the roles and of these verbs is enough, another one at each route.
    """
    for number, name in enumerate(name for name in ROUTES if _part(name) == part):
        declared = dict(ROUTES[name].by_verb())
        for verb, verdicts in declared.items():
            roles = list(ROLES) if number % EVERY**2 == 0 else at_the_limits(verdicts, every=number % EVERY == 0)
            found = {}
            for role in roles:
                with _page_if(verdicts[role]):
                    found[role] = verdict_for(world, name, verb, role)
            assert found == {role: verdicts[role] for role in roles}, f"{verb} {name}"
        for verb in () if part == "api:v1" else _some(sorted(set(VERBS) - set(declared)), number):
            with contexts_only():
                assert verdict_for(world, name, verb, "platform_admin") != "ok", f"{verb} {name}"


def _page_if(expected: str) -> AbstractContextManager[None]:
    """Only the page of who is admitted has a text: that of a refusal is always the same, and takes most of the time."""
    return nullcontext() if expected == "ok" else contexts_only()


def _some(verbs: list[str], number: int) -> list[str]:
    return verbs[number % EVERY**2 :: EVERY**2] if EVERY > 1 else verbs


@pytest.mark.parametrize("role", ["tenant_admin", "platform_admin"])
@pytest.mark.parametrize("held", Scope)
def test_token_is_limited_by_owner_and_scope(world: World, held: Scope, role: str) -> None:
    """Every route that takes tokens, with every verb. A missing scope is why it is refused, also to the admin.

    A scope beyond the one that is needed gets the same verdict, so by default a part of the routes is enough for it,
    and for a missing scope: another part with each scope.
    """
    owner, now = world.roles[role], clock.now()
    secret = accounts.create_token(owner, name="t", lifetime=timedelta(days=1), scopes=[held], now=now)
    step = 1 if EVERY == 1 else 2 * EVERY
    first = [*Scope].index(held) % step
    expected = {
        (name, verb): _expected(name, verb, held, role)
        for number, name in enumerate(TAKE_TOKENS)
        for verb, _verdicts in ROUTES[name].by_verb()
        if number % step == first or access.scope_for(ANSWERS[name], verb) is held
    }
    requested = {of: word for of, word in expected.items() if word != "lacks" or role == "platform_admin"}
    assert {(name, verb): _with_token(world, name, verb, secret) for name, verb in requested} == requested


def _with_token(world: World, name: str, verb: str, secret: str) -> str:
    with transaction.atomic():
        answer = respond(
            world, name, verb, world.browser(world.signed_in["anonymous"]), Authorization=f"Bearer {secret}"
        )
        transaction.set_rollback(True)
    lacks = answer.status_code == 403 and "lacks the scope" in answer.content.decode()
    return "lacks" if lacks else verdict(answer)


def _expected(name: str, verb: str, held: Scope, role: str) -> str:
    needed = access.scope_for(ANSWERS[name], verb)
    if needed is None or not allows([held], needed):
        return "lacks"
    if name.endswith(":logout"):
        return "ok"  # the token itself is revoked; a session has none to send
    return getattr(ROUTES[name], verb)[role]


@pytest.mark.parametrize("part", sorted({_part(name) for name in ROUTES}))
def test_impersonation_has_the_rights_of_the_user_or_is_refused(world: World, part: str) -> None:
    client = impersonate(world.people.alice, by=world.people.ada)
    record_browser(client)
    cookies = client.cookies
    for number, name in enumerate(name for name in ROUTES if _part(name) == part):
        for verb, verdicts in ROUTES[name].by_verb():
            if reach.is_open(name, verb) and number % EVERY:
                continue  # most routes are: by default a part of them is enough
            as_the_person = verdicts["tenant_admin"] if reach.is_open(name, verb) else "refused"
            expected = "ok" if name in reach.AS_ONESELF else as_the_person
            with _page_if(expected):
                assert _verdict_while_impersonating(world, cookies, name, verb) == expected, f"{verb} {name}"


def _verdict_while_impersonating(world: World, cookies: SimpleCookie, name: str, verb: str) -> str:
    with transaction.atomic():
        answer = respond(world, name, verb, world.browser(cookies))
        transaction.set_rollback(True)
    return verdict(answer)


def test_access_matrix_command_prints_every_route() -> None:
    output = StringIO()
    call_command("access_matrix", stdout=output)
    lines = output.getvalue().splitlines()
    other_roles = f"sign in | {'refused | ' * 6}yes | yes"
    assert f"| `queues:set_state` | POST | – | yes | {other_roles} |" in lines
    assert f"| `api:v1:queues` | POST | manage | – | {other_roles} |" in lines
    rows = sum(1 for declared in ROUTES.values() for _ in declared.by_verb())
    assert sum(line.startswith("| `") for line in lines) == rows + len(registry.sockets())


def test_viewer_cannot_submit(world: World) -> None:
    client = Client()
    client.force_login(world.people.bob, backend="django.contrib.auth.backends.ModelBackend")
    page = client.post(reverse("jobs:submit_yaml"), {"text": MANIFEST})
    assert "but not submit to it" in page.content.decode()
    assert not Job.objects.filter(name="sent").exists()
    assert Job.objects.filter(name="sent").count() == 0


def test_members_act_on_their_own_jobs(world: World) -> None:
    Job.objects.filter(pk=world.job.pk).update(owner=world.roles["member"])
    assert verdict_for(world, "jobs:command", "post", "member") == "ok"


def test_every_link_of_the_rail_opens(world: World) -> None:
    for role, user in world.roles.items():
        if user is None:
            continue
        client = Client()
        client.force_login(user)
        rail = client.get(reverse("home")).content.decode().partition('<nav class="rail-nav"')[2].partition("</nav>")[0]
        links = [link for link in re.findall(r'href="(/[^"#]*)"', rail) if link != reverse("accounts:sign_out")]
        assert len(links) > 8, role
        with contexts_only():
            assert {link: client.get(link).status_code for link in links} == dict.fromkeys(links, 200), role
