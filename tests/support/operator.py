"""Controls a running Hekla from a process of its own: one JSON command a line in, one answer a line out.

    {"do": "submit", "name": …, "command": […], "replicas": n}    answers once the job is in the rows
    {"do": "share", "folder": …}                                  pods of the local cluster may write to the folder
    {"do": "phases"}                                              name -> phase
    {"do": "audit"}                                               the result of the audit
    {"do": "sessions"}                                            of each: uid, whether it is open, phase of its pod
    {"do": "minutes"}                                             some of a cluster of its own, measured as they passed
    {"do": "news"}                                                one more job there, counted at once
    {"do": "link"}                                                the secret of a sign-in link of the first admin

PostgreSQL may be down for a moment: a command is retried until it succeeds, and a submission is not repeated.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

HOME = Path(sys.argv[1]) if len(sys.argv) > 1 else Path()
PATIENCE_SECONDS = 60


def prepare() -> None:
    """Configures Django for the running instance."""
    from hekla.launcher.embedded import Postgres, Valkey
    from hekla.launcher.embedded.rundir import run_dir

    run = run_dir(HOME)
    os.environ.update(
        DATABASE_URL=Postgres(HOME / "postgres", run).url,
        VALKEY_URL=Valkey(run).url,
        HEKLA_HOME=str(HOME),
        HEKLA_SECRET_KEY="operator",
        DJANGO_SETTINGS_MODULE="hekla.project.settings",
    )
    import django

    django.setup()


def retry(work: Any, *arguments: Any) -> Any:
    """Calls `work` until it succeeds, while the database is down."""
    from django.db import InterfaceError, OperationalError, connection

    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return work(*arguments)
        except (OperationalError, InterfaceError):
            connection.close()
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def submit(order: dict[str, Any]) -> str:
    from hekla.apps.accounts.models import User
    from hekla.apps.jobs import services
    from hekla.apps.jobs.services.submission import JobNameConflict
    from hekla.apps.tenancy.models import Tenant
    from hekla.domain.jobspec import JobSpec
    from hekla.lib import clock

    task = {"name": "w", "replicas": order["replicas"], "command": order["command"], "resources": {"cpu": "100m"}}
    spec = JobSpec.parse({"name": order["name"], "tasks": [task]})
    try:
        services.submit(
            spec=spec, tenant=Tenant.objects.get(slug="first"), user=User.objects.get(username="admin"), now=clock.now()
        )
    except JobNameConflict:
        return "was done"
    return "done"


def share(order: dict[str, Any]) -> str:
    from hekla.apps.clusters import services
    from hekla.apps.clusters.models import Cluster
    from hekla.apps.event_log.services import PLATFORM
    from hekla.lib import clock

    config = {"writable_folders": [order["folder"]]}
    services.change(Cluster.objects.get(kind="local"), {"config": config}, actor=PLATFORM, now=clock.now())
    return "done"


def phases(_order: dict[str, Any]) -> dict[str, str]:
    from hekla.apps.jobs.models import Job

    return dict(Job.objects.values_list("name", "phase"))


def verdict(_order: dict[str, Any]) -> str:
    from tests.support import auditor

    try:
        auditor.audit()
    except AssertionError as error:
        return f"{type(error).__name__}: {error}"
    return "sound"


def sessions(_order: dict[str, Any]) -> list[tuple[str, bool, str]]:
    from hekla.apps.workbench.models import ToolSession

    found = ToolSession.objects.select_related("pod").order_by("pk")
    return [(one.uid.hex, one.ended_at is None, one.pod.phase) for one in found]


def link(_order: dict[str, Any]) -> str:
    from hekla.apps.accounts import services
    from hekla.apps.accounts.models import User
    from hekla.apps.event_log.services import PLATFORM
    from hekla.lib import clock

    return services.issue_link(User.objects.get(username="admin"), actor=PLATFORM, now=clock.now())


def minutes(_order: dict[str, Any]) -> str:
    """Lets some pass in simulated time, through the services of the controller. No real one takes its cluster. Many
    jobs fail.
    """
    from datetime import timedelta
    from unittest.mock import patch

    from django.db import transaction

    from hekla.apps.clusters import services as clusters
    from hekla.apps.clusters.models import Lease
    from hekla.apps.event_log.services import PLATFORM
    from hekla.bench.operations import workload, world
    from hekla.bench.operations.day import SimulatedDay
    from hekla.bench.operations.size import OperationsSize
    from hekla.lib import clock

    size = OperationsSize(nodes=8, pods=18_000, days=1, minutes=20, tenants=2, people_per_tenant=2)
    begin = clock.now().replace(second=0, microsecond=0) - timedelta(minutes=21)
    with transaction.atomic():
        made = world.make(size, begin)
        clusters.change(made.cluster, {"is_paused": True}, actor=PLATFORM, now=begin)
        Lease.objects.filter(cluster=made.cluster).update(expires_at=begin + timedelta(days=1))
    with patch.object(workload, "_FAILS", 0.4):
        SimulatedDay(size, made, begin).run(lambda _text: None)
    return "done"


def news(_order: dict[str, Any]) -> str:
    from hekla.apps.accounts.models import User
    from hekla.apps.jobs import services
    from hekla.apps.measures.services import count_jobs
    from hekla.apps.measures.signals import JOBS, rolled_up
    from hekla.apps.tenancy.models import Tenant
    from hekla.bench.operations.size import OperationsSize
    from hekla.bench.operations.workload import DayDemand
    from hekla.lib import clock

    now = clock.now()
    spec = DayDemand(OperationsSize(nodes=4)).spec(f"news-{now:%M%S}", "queue-0")
    user = User.objects.get(username="person-0-1")
    services.submit(spec=spec, tenant=Tenant.objects.get(slug="team-0"), user=user, now=now)
    count_jobs(now=now)
    rolled_up.send(None, topic=JOBS)
    return "done"


COMMANDS = {
    "minutes": minutes, "news": news, "link": link, "submit": submit, "share": share, "phases": phases,
    "audit": verdict, "sessions": sessions,
}  # fmt: skip

if __name__ == "__main__":
    prepare()
    for line in sys.stdin:
        command = json.loads(line)
        print(json.dumps(retry(COMMANDS[command["do"]], command)), flush=True)
