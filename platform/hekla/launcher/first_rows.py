"""The first rows of a new platform: an admin, a tenant, this machine as a cluster, a queue, and environments."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts import services as account_services
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
from hekla.lib import clock

_DEMO_TIME = timedelta(weeks=1)
"""As long as the simulated history."""
_DEMO_PRICES = PriceSpec(
    name="Prices of the demonstration",
    currency="EUR",
    cpu="0.035",
    memory="0.004",
    gpu="2.10",
    windows=(PriceWindow(begin=20, end=6, factor="0.7"),),
)


def make(admin: str, environments: Mapping[str, str], *, demo: bool, tell: Callable[[float], None]) -> None:
    """Create what is missing, with an admin of this name.

    `environments`: the requirements of those to create, by name. `tell`: called with the part of the history so far.
    """
    is_new = demo and _make_history(clock.now(), tell)  # first: the log then begins with the oldest events
    now = clock.now()
    if not accounts.everybody().exclude(username__in=workload.USERNAMES).exists():
        with unit_of_work():
            _begin(admin, now)
    for name, requirements in environments.items():
        cluster_services.create_environment(
            name=name, description=f"For the example {name}", requirements=requirements, actor=PLATFORM, now=now
        )
    if demo:
        _add_stages(now)
        price_services.create_for_demonstration(spec=_DEMO_PRICES, begin_at=now - _DEMO_TIME, now=now)
    person = accounts.first_admin(admin)
    if is_new and person is not None:  # later, they may have left the teams
        workload.admit(person, now=now)


def _begin(username: str, now: datetime) -> None:
    admin = account_services.create_user(
        username=username,
        password=None,
        display_name="Admin",
        platform_role=PlatformRole.ADMIN,
        actor=PLATFORM,
        now=now,
    )
    tenant = quota_services.create_tenant(slug="first", name="First team", actor=PLATFORM, now=now)
    tenancy_services.add_member(tenant, admin, TenantRole.ADMIN, actor=PLATFORM, now=now)
    cluster = cluster_services.create(name="local", kind="local", config={}, actor=PLATFORM, now=now)
    queue_services.create(cluster=cluster, name="default", actor=PLATFORM, now=now)


def _make_history(now: datetime, tell: Callable[[float], None]) -> bool:
    """Create the simulated teams, and their history; continue it if a former start was interrupted.

    Returns whether this start completed the history.
    """
    from hekla.launcher.simulated_week import POLICY, WEEK, SimulatedHistory  # noqa: PLC0415  (with the controller)

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
