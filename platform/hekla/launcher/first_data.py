"""The first rows of a new platform: an admin, a tenant, this machine as a cluster, a queue, and environments."""

from datetime import datetime
from typing import Any

from django.conf import settings
from django.urls import reverse

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts import services as account_services
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import PlatformRole, TenantRole
from hekla.apps.clusters import selectors as clusters
from hekla.apps.clusters import services as cluster_services
from hekla.apps.demonstrations import services as demonstrations
from hekla.apps.demonstrations.stages import STAGES
from hekla.apps.event_log.services import PLATFORM, unit_of_work
from hekla.apps.queues import services as queue_services
from hekla.apps.quotas import services as quota_services
from hekla.apps.tenancy import services as tenancy_services
from hekla.apps.tenancy.models import Tenant
from hekla.lib import clock
from hekla.lib.checkout import CHECKOUT

ADMIN = "admin"
_EXAMPLES = CHECKOUT / "platform" / "examples"


def prepare(*, demo: bool) -> dict[str, Any]:
    """Create the missing rows. Returns `sign_in` (a path with a one-time secret) and `username`."""
    now = clock.now()
    if accounts.nobody_yet():
        with unit_of_work():
            _begin(now)
    _add_environments(now)
    if demo:
        _add_demo(now)
        _add_stages(now)
    admin = accounts.by_username(ADMIN) or accounts.everybody().filter(platform_role=PlatformRole.ADMIN).first()
    if admin is None:
        return {"sign_in": reverse("accounts:sign_in"), "username": ""}
    secret = account_services.issue_link(admin, actor=PLATFORM, now=now)
    _leave_key_for_command_line(admin, now)
    return {"sign_in": reverse("accounts:use_link", args=[secret]), "username": admin.username}


def _begin(now: datetime) -> None:
    admin = account_services.create_user(
        username=ADMIN, password=None, display_name="Admin", platform_role=PlatformRole.ADMIN, actor=PLATFORM, now=now
    )
    tenant = quota_services.create_tenant(slug="first", name="First team", actor=PLATFORM, now=now)
    tenancy_services.add_member(tenant, admin, TenantRole.ADMIN, actor=PLATFORM, now=now)
    cluster = cluster_services.create(name="local", kind="local", config={}, actor=PLATFORM, now=now)
    queue_services.create(cluster=cluster, name="default", actor=PLATFORM, now=now)


def _add_environments(now: datetime) -> None:
    """Create the missing environments of the examples, also on a platform older than the examples."""
    known = set(clusters.environments().values_list("name", flat=True))
    for folder in sorted(_EXAMPLES.glob("*/environment.txt")):
        if folder.parent.name in known:
            continue
        cluster_services.create_environment(
            name=folder.parent.name,
            description=f"For the example {folder.parent.name}",
            requirements=folder.read_text(),
            actor=PLATFORM,
            now=now,
        )


def _leave_key_for_command_line(admin: User, now: datetime) -> None:
    """Write an admin token for the command line into the data folder, if there is no valid one.

    People who can read the data folder have full access anyway, so `hekla` on this machine needs no sign-in.
    """
    path = settings.HEKLA_HOME / "cli-token"
    known = path.read_text().strip() if path.exists() else ""
    if known and account_services.token_in_force(known, now=now) is not None:
        return
    secret = account_services.create_token(
        admin, name="this machine", lifetime=account_services.MAX_TOKEN_LIFETIME, now=now, actor=PLATFORM
    )
    path.touch(mode=0o600)
    path.write_text(secret)


_DEMO_PEOPLE = {"alice": "Alice Berg", "bob": "Bob Lindqvist", "charlie": "Charlie Zhou"}
_DEMO_TENANTS = {"vision": ("Vision lab", ["alice", "bob"]), "language": ("Language lab", ["charlie"])}
_DEMO_NODE = {"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": "8", "pods": "110"}


def _add_demo(now: datetime) -> None:
    """Create the cluster `demo`, marked as simulated, with people, tenants and queues."""
    if clusters.all_clusters().filter(name="demo").exists():
        return
    with unit_of_work():
        people = {
            name: account_services.create_user(username=name, password=None, display_name=full, actor=PLATFORM, now=now)
            for name, full in _DEMO_PEOPLE.items()
        }
        nodes = [{"name": "gpu", "count": 4, "allocatable": _DEMO_NODE, "labels": {"gpu": "a100"}}]
        config = {"nodes": nodes, "seed": 1, "speed": 60}
        cluster = cluster_services.create(name="demo", kind="simulated", config=config, actor=PLATFORM, now=now)
        for weight, (slug, (name, members)) in enumerate(_DEMO_TENANTS.items(), start=1):
            tenant = _demo_tenant(slug, name, [people[member] for member in members], now)
            values = {"weight": weight, "description": f"{name}, on simulated machines"}
            queue_services.create(
                cluster=cluster, name=f"demo-{slug}", values=values, tenants=[tenant], actor=PLATFORM, now=now
            )


def _add_stages(now: datetime) -> None:
    """Create the simulated clusters of the demonstrations, so that everybody can start one."""
    there = set(clusters.all_clusters().values_list("name", flat=True))  # a demonstration may be running on them
    for stage in STAGES:
        if stage.name not in there:
            demonstrations.set_up(stage, now=now)


def _demo_tenant(slug: str, name: str, members: list[User], now: datetime) -> Tenant:
    tenant = quota_services.create_tenant(slug=slug, name=name, actor=PLATFORM, now=now)
    for place, member in enumerate(members):
        role = TenantRole.MEMBER if place else TenantRole.ADMIN
        tenancy_services.add_member(tenant, member, role, actor=PLATFORM, now=now)
    admin = accounts.by_username(ADMIN)
    if admin is not None:
        tenancy_services.add_member(tenant, admin, TenantRole.ADMIN, actor=PLATFORM, now=now)
    return tenant
