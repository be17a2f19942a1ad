"""The first rows of a new platform: an admin, a tenant, this machine as a cluster, a queue, and environments."""

from collections.abc import Callable
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
from hekla.apps.demonstrations import selectors as demo_selectors
from hekla.apps.demonstrations import services as demonstrations
from hekla.apps.demonstrations import workload
from hekla.apps.demonstrations.stages import STAGES
from hekla.apps.event_log.services import PLATFORM, unit_of_work
from hekla.apps.prices import services as price_services
from hekla.apps.queues import services as queue_services
from hekla.apps.quotas import services as quota_services
from hekla.apps.tenancy import services as tenancy_services
from hekla.domain.prices import PriceSpec, PriceWindow
from hekla.launcher.simulated_week import POLICY, WEEK, SimulatedHistory
from hekla.lib import clock
from hekla.lib.checkout import CHECKOUT

ADMIN = "admin"
DEMO_PRICES = PriceSpec(
    name="Prices of the demonstration",
    currency="EUR",
    cpu="0.035",
    memory="0.004",
    gpu="2.10",
    windows=(PriceWindow(begin=20, end=6, factor="0.7"),),
)
_EXAMPLES = CHECKOUT / "platform" / "examples"


def prepare(*, demo: bool, tell: Callable[[float], None] = lambda _part: None) -> dict[str, Any]:
    """Create the missing rows. Returns `sign_in` (a path with a one-time secret) and `username`.

    `tell`: called with the part of a demonstration's history that is made so far, from 0 to 1.
    """
    is_new = demo and _make_history(clock.now(), tell)  # first: the log then begins with the oldest events
    now = clock.now()
    if not accounts.everybody().exclude(username__in=workload.USERNAMES).exists():
        with unit_of_work():
            _begin(now)
    _add_environments(now)
    if demo:
        _add_stages(now)
        price_services.create_for_demonstration(spec=DEMO_PRICES, begin_at=now - WEEK, now=now)
    admin = _admin()
    if admin is None:
        return {"sign_in": reverse("accounts:sign_in"), "username": ""}
    if is_new:  # later, they may have left the teams
        workload.admit(admin, now=now)
    secret = account_services.issue_link(admin, actor=PLATFORM, now=now)
    _leave_key_for_command_line(admin, now)
    return {"sign_in": reverse("accounts:use_link", args=[secret]), "username": admin.username}


def _admin() -> User | None:
    return accounts.by_username(ADMIN) or accounts.everybody().filter(platform_role=PlatformRole.ADMIN).first()


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


def _make_history(now: datetime, tell: Callable[[float], None]) -> bool:
    """Create the simulated teams, and their history; continue it if a former start was interrupted.

    Returns whether this start completed the history.
    """
    made = demo_selectors.workload()
    if made is None and not clusters.all_clusters().filter(name=workload.CLUSTER).exists():
        made = workload.set_up(policy=POLICY, since=now - WEEK)
    if made is None or made.history_until is not None or made.removed_at is not None:
        return False
    SimulatedHistory(made, tell).make()
    return True


def _add_stages(now: datetime) -> None:
    """Create the simulated clusters of the demonstrations, so that everybody can start one."""
    there = set(clusters.all_clusters().values_list("name", flat=True))  # a demonstration may be running on them
    for stage in STAGES:
        if stage.name not in there:
            demonstrations.set_up(stage, now=now)
