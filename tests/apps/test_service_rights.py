"""Every verb of a service checks its actor itself: pages, REST and the command line are not the only way to it.

A public function that is in no table here fails the test: name it, and say who may call it.
"""

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import transaction
from tests.apps.access_world import World
from tests.apps.service_verbs import FLOW, GROUPS, SENT, Call
from tests.apps.shared_world import db, shared_world

import hekla.apps
from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.services import actor_of
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.flows import services as flows
from hekla.apps.jobs import services as jobs
from hekla.apps.queues import services as queues
from hekla.apps.tenancy import services as tenancy
from hekla.domain.errors import Forbidden, NotFound
from hekla.lib import clock

__all__ = ["db", "shared_world"]
APPS = Path(hekla.apps.__path__[0])
VERBS = {name: (call, may, may_not) for group, may, may_not in GROUPS for name, call in group.items()}

OF_THE_PERSON = {
    "accounts": {"create_token", "prove_password", "note_sign_in"},
    "identities": {"connect"},
    "jobs": {"arrange"},
    "login_sessions": {"end_others", "note"},
    "notifications": {"choose", "forget_choice", "mark_read", "renew_secret"},
    "reports": {"arrange_overview", "create", "leave"},
    "signin": {"add_key", "begin", "confirm", "prove", "prove_with_key", "remove", "renew_codes"},
}
"""They write only rows of the person who is their argument: the actor is the owner."""

BY_SECRET = {
    "accounts": {"use_link", "token_in_force", "session_token_in_force"},
    "identities": {"arrive"},
    "invitations": {"accept", "sign_up"},
    "invitations.letters": {"post"},
}
"""Whoever has the secret, or the claims of a provider, has the right."""

QUESTIONS = {
    "alerts": {"require_right"},
    "accounts": {"actor_of", "person_of", "require", "require_actor"},
    "event_log": {"dry_run", "is_pending"},
    "external_pods": {"find_owner"},
    "idleness": {"evidence_of", "require_reason", "require_right"},
    "invitations.importing": {"counted"},
    "jobs": {
        "find_problems",
        "fixed_since",
        "has_priority",
        "is_scalable",
        "last_moment",
        "may_remind",
        "no_terminal",
        "require_priority",
        "require_reminder_right",
        "require_right",
        "require_submission_right",
        "require_terminal",
        "scaling_remarks",
        "would_sync",
    },
    "clusters.leases": {"assert_held", "held", "is_held", "last_shuffle_at", "renewed_at", "unrenewed_for"},
    "job_metrics": {"documents", "instants", "series_of"},
    "prices": {"require_right"},
    "quotas": {"checked"},
    "reports": {"require_right"},
    "signin": {"secret_of"},
    "tenancy": {"require", "require_actor", "require_some"},
    "sharing": {"known_secrets", "require_own"},
    "workbench": {"facts_of", "may_have_token", "no_session"},
}
"""They change nothing. Some of them are the checks of the others."""

OF_THE_PLATFORM = {
    "accounts": {"end_session_token", "issue_session_token"},
    "alerts": {"act_due", "evaluate", "tidy"},
    "batches.ending": {"end_batches"},
    "clusters": {"observe_health", "observe_nodes", "observe_objects", "observe_usage", "lose_node"},
    "clusters.leases": {"take", "record_shuffle", "release", "renew", "report_fault", "revoke"},
    "demonstrations": {"advance_all"},
    "demonstrations.workload": {"admit", "advance", "end_history", "made_until", "set_up", "submit"},
    "event_log": {"on_behalf", "purge", "record", "unannounced", "unit_of_work", "within_session"},
    "external_pods": {"follow", "return_to_pending"},
    "flows": {"advance_all"},
    "cycle_records": {"delete_old", "store"},
    "policy_lab": {"beat", "claim", "fail", "finish", "release"},
    "forecasts": {"keep"},
    "idleness": {"end_idle", "warn"},
    "idleness.job_services": {"abort_idle", "warn"},
    "impersonation": {"end_overdue"},
    "invitations.letters": {"send_due"},
    "jobs": {
        "autoscale",
        "block_evictions",
        "commit",
        "drop_expired_uploads",
        "delay",
        "delete_expired",
        "delete_finished",
        "end",
        "end_pods",
        "end_unstarted",
        "evict_late",
        "follow",
        "mark_cleaned",
        "mark_frozen_cleaned",
        "mark_logs_purged",
        "move",
        "note_preparation",
        "note_size",
        "observe",
        "purge_history",
        "record_fault",
        "record_ssh_end",
        "record_terminal_end",
        "release_due",
        "sync",
    },
    "job_metrics": {"claim", "follow", "release", "store"},
    "login_sessions": {"renew_signatures"},
    "measures": {"count_jobs", "rebuild", "rebuild_jobs", "roll_up"},
    "measures.queue_services": {"observe_queues", "roll_up_queues"},
    "notifications": {"follow", "look", "send_due", "tell_of_batch", "tell_of_themselves", "tidy"},
    "prices": {"create_for_demonstration"},
    "reports": {"send_due", "settle"},
    "schedules": {"start_due", "tidy"},
    "secrets": {"keep", "forget"},
    "usage": {"record", "thin"},
    "sharing": {
        "claim_forks",
        "close_terminal",
        "end_guests_of",
        "finish_fork",
        "finish_recording",
        "tidy_guests",
        "tidy_recordings",
    },
    "workbench": {
        "close_session",
        "end_idle",
        "end_with_pods",
        "issue_token",
        "note_failure",
        "note_ready",
        "note_start",
    },
}
"""Controllers, periodic tasks and other services call them, with the rows that they lead; people cannot reach them."""

DOORS = ("pages", "api", "live", "cli")
OTHER_MODULES = (
    "batches.ending",
    "clusters.leases",
    "demonstrations.workload",
    "idleness.job_services",
    "invitations.importing",
    "invitations.letters",
    "measures.queue_services",
    "tenancy.departments",
)
"""Modules of apps that write, but are not named `services`."""
REACHED = {
    "event_log": {"on_behalf", "within_session"},
    "clusters": {"observe_health"},
    "jobs": {"record_ssh_end", "record_terminal_end"},
    "sharing": {"close_terminal", "finish_recording"},
}
"""Impersonation names the admin around a whole request, and the token of a session the session; operators may store the
result of a check of the connection; the end of a terminal, its recording or an SSH connection is recorded also when its
owner has lost the right to it."""


def _modules() -> Iterator[tuple[str, str]]:
    """The modules with verbs: their short name, and their path."""
    for app in pkgutil.iter_modules([str(APPS)]):
        if (APPS / app.name / "services.py").exists() or (APPS / app.name / "services").is_dir():
            yield app.name, f"hekla.apps.{app.name}.services"
    for name in OTHER_MODULES:
        yield name, f"hekla.apps.{name}"


def _public(path: str) -> set[str]:
    module = importlib.import_module(path)
    own = {name for name, value in vars(module).items() if getattr(value, "__module__", "") == path}
    names = getattr(module, "__all__", {name for name in own if not name.startswith("_")})
    return {name for name in names if inspect.isfunction(getattr(module, name))}


def _flat(table: dict[str, set[str]]) -> set[str]:
    return {f"{module}.{verb}" for module, verbs in table.items() for verb in verbs}


def test_every_public_function_of_a_service_is_in_one_table() -> None:
    known = [{name.partition("/")[0] for name in VERBS}]
    known += [_flat(table) for table in (OF_THE_PERSON, BY_SECRET, QUESTIONS, OF_THE_PLATFORM)]
    everything = [name for table in known for name in table]
    assert len(everything) == len(set(everything))
    assert set(everything) == {f"{name}.{verb}" for name, path in _modules() for verb in _public(path)}


def test_no_other_module_of_an_app_writes() -> None:
    """Otherwise its functions would be verbs that the test above does not see."""
    found = {
        ".".join(path.relative_to(APPS).with_suffix("").parts)
        for path in APPS.rglob("*.py")
        if "services" not in path.relative_to(APPS).with_suffix("").parts and "unit_of_work()" in path.read_text()
    }
    assert found == set(OTHER_MODULES)


def test_people_cannot_reach_the_verbs_of_the_platform() -> None:
    root = APPS.parent
    names = {path: name for name, path in _modules()}
    reached = {
        f"{names[module]}.{verb}"
        for door in DOORS
        for path in (root / door).rglob("*.py")
        for module, verb in _used(ast.parse(path.read_text()), set(names))
    }
    assert "queues.change" in reached
    assert reached & _flat(OF_THE_PLATFORM) == _flat(REACHED)


def _used(tree: ast.Module, modules: set[str]) -> Iterator[tuple[str, str]]:
    """The functions of these modules that a source file names."""
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    aliases = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in imports
        for alias in node.names
        if f"{node.module}.{alias.name}" in modules
    }
    for node in imports:
        module = str(node.module)
        found = next((one for one in modules if module == one or module.startswith(f"{one}.")), None)
        yield from ((found, alias.name) for alias in node.names if found)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in aliases:
            yield aliases[node.value.id], node.attr


@pytest.fixture
def world(db: None, shared_world: World) -> World:
    return shared_world


def _is_allowed(world: World, call: Call, role: str) -> bool:
    """Whether the call works for this role. It is undone."""
    known = world.roles[role]
    assert known is not None
    user = User.objects.get(pk=known.pk)
    with transaction.atomic():
        try:
            call(world, user)
        except (Forbidden, NotFound):
            return False
        finally:
            transaction.set_rollback(True)
    return True


@pytest.mark.parametrize("name", VERBS)
def test_verb_refuses_who_may_not(world: World, name: str) -> None:
    call, may, may_not = VERBS[name]
    assert _is_allowed(world, call, may)
    assert not [role for role in may_not if _is_allowed(world, call, role)]


def test_refused_verb_leaves_no_event(world: World) -> None:
    before, queue, bob = LoggedEvent.objects.count(), world.people.queue, world.people.bob
    with pytest.raises(Forbidden):
        queues.set_state(queue, "closed", by=bob, actor=actor_of(bob), now=clock.now())
    queue.refresh_from_db()
    assert (queue.state, LoggedEvent.objects.count()) == ("open", before)


def test_right_is_that_of_the_stored_person(world: World) -> None:
    """An actor is an id and a name: what the person may do is read when the verb is called."""
    ada, alice = world.people.ada, User.objects.get(pk=world.people.alice.pk)
    actor = actor_of(alice)
    accounts.change_user(alice, {"platform_role": "admin"}, password=None, actor=PLATFORM, now=clock.now())
    tenancy.change(world.people.lab, {"name": "New"}, actor=actor, now=clock.now())
    accounts.change_user(alice, {"is_active": False}, password=None, actor=actor_of(ada), now=clock.now())
    with pytest.raises(Forbidden):
        tenancy.change(world.people.lab, {"name": "Newer"}, actor=actor, now=clock.now())


def test_people_change_their_own_name_and_password_but_not_their_role(world: World) -> None:
    bob = User.objects.get(pk=world.people.bob.pk)
    values = {"display_name": "Robert"}
    accounts.change_user(bob, values, password="a-long-walk-home", actor=actor_of(bob), now=clock.now())
    bob.refresh_from_db()
    assert (bob.display_name, bob.check_password("a-long-walk-home")) == ("Robert", True)
    with pytest.raises(Forbidden):
        accounts.change_user(bob, {"platform_role": "admin"}, password=None, actor=actor_of(bob), now=clock.now())


def test_repeated_submission_needs_the_right_again(world: World) -> None:
    """The first result is not given to somebody who may not submit any more."""
    member = world.roles["member"]
    assert member is not None
    common = {"tenant": world.people.lab, "user": member, "now": clock.now(), "key": "k"}
    job, flow = jobs.submit(spec=SENT, **common), flows.start(spec=FLOW, **common)
    assert (jobs.submit(spec=SENT, **common), flows.start(spec=FLOW, **common)) == (job, flow)
    tenancy.change_role(world.people.lab, member.pk, "viewer", actor=PLATFORM, now=clock.now())
    with pytest.raises(Forbidden):
        jobs.submit(spec=SENT, **common)
    with pytest.raises(Forbidden):
        flows.start(spec=FLOW, **common)
