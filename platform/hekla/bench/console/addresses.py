"""The addresses of the pages that people use, and of the REST requests that programs send."""

from collections.abc import Iterator, Sequence
from urllib.parse import urlencode

from django.db.models import Model
from django.urls import reverse

from hekla.apps.accounts.models import User
from hekla.apps.batches.models import Batch
from hekla.apps.clusters.models import Node
from hekla.apps.flows.models import Flow
from hekla.apps.gallery.models import Template
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.paging import Cursor
from hekla.apps.schedules.models import Schedule
from hekla.bench.console.world import some_jobs
from hekla.pages.jobs.tabs import WORDS

OTHERS = 30
"""Number of jobs, pods etc. that are opened in turn."""
Page = tuple[str, Sequence[str]]


def pages(user: User) -> Iterator[Page]:
    """The name of each page that this person uses, and the URLs to open in turn; none if there is nothing to open."""
    which = {} if user.platform_role else {"tenant__memberships__user": user}
    jobs = some_jobs(OTHERS, **which)
    job = jobs[len(jobs) // 2]
    yield "home", [reverse("home")]
    yield "home: last 24 hours", [reverse("home_day")]
    if user.platform_role:
        yield "home: needs attention", [reverse("home_needs")]
    yield from _lists(job)
    yield from _of_jobs(jobs, which)
    yield from _submission(job)
    yield from _other_work(which)
    yield from _queues_and_nodes(jobs, user)
    yield from _people(job, user)
    yield from _rest(jobs, user)


def _lists(job: Job) -> Iterator[Page]:
    place = reverse("jobs:list")
    yield "jobs", [place]
    for what, query in {
        "phase": "phase=failed",
        "queue": f"queue={job.queue.name}",
        "tenant": f"tenant={job.tenant.slug}",
        "sorted by name": "sort=name",
        "text, many": "q=llama",
        "text, one": f"q={job.name[-6:]}",
        "text, none": "q=nothingofthekind",
        "grouped": "group=queue",
        "a failed pod": "failed_pods=yes",
        "a reason": "reason=Error&sort=name",
        "together": f"phase=failed&queue={job.queue.name}&q=bert&sort=-priority",
    }.items():
        yield f"jobs: {what}", [f"{place}?{query}"]
    yield "jobs: deep page", [f"{place}?{_deep(job)}"]
    yield "search", [f"{reverse('search:results')}?q=llama"]


def _deep(job: Job) -> str:
    """The query of the list page after this job, which is from the middle of all jobs."""
    return urlencode({"cursor": str(Cursor(False, job.submitted_at, job.pk))})


def _of_jobs(jobs: Sequence[Job], which: dict[str, User]) -> Iterator[Page]:
    for tab in WORDS:
        yield f"job: {tab}", [f"{reverse('jobs:detail', args=[one.uid])}?tab={tab}" for one in jobs]
    for phase in ("running", "pending"):
        found = Job.objects.filter(phase=phase, **which).order_by("-replicas")[:OTHERS]
        yield f"job that is {phase}", [reverse("jobs:detail", args=[one.uid]) for one in found]
    yield "job: export", [reverse("jobs:export", args=[one.uid]) for one in jobs]
    pods = Pod.objects.filter(index=0, task="worker", attempt=1, job__in=jobs).select_related("job")
    yield "pod", [reverse("jobs:pod", args=[pod.job.uid, pod.pk]) for pod in pods]
    running = Pod.objects.filter(phase="running", job__in=Job.objects.filter(phase="running", **which))[:OTHERS]
    yield "use of a pod", [reverse("usage:pod", args=[pod.pk]) for pod in running]
    alive = Job.objects.filter(phase="running", **which)[:OTHERS]
    yield "use of a job", [reverse("usage:job", args=[one.uid]) for one in alive]


def _submission(job: Job) -> Iterator[Page]:
    for name in ("jobs:submit", "jobs:submit_yaml", "batches:sweep", "flows:start", "schedules:create"):
        yield f"new: {name}", [reverse(name)]
    yield "new: copy of a job", [f"{reverse('jobs:submit')}?clone={job.uid}"]
    yield "templates", [reverse("gallery:list")]
    yield "templates: search", [f"{reverse('gallery:list')}?q=train"]
    yield (
        "template",
        [reverse("gallery:template", args=[one.uid]) for one in Template.objects.filter(tenant=job.tenant)],
    )
    yield "flow templates", [reverse("flows:templates")]
    yield "own templates", [reverse("jobs:presets")]


def _other_work(which: dict[str, User]) -> Iterator[Page]:
    for what, list_of, model in (
        ("flow", "flows", Flow),
        ("batch", "batches", Batch),
        ("schedule", "schedules", Schedule),
    ):
        yield list_of, [reverse(f"{list_of}:list")]
        yield what, _details(model, f"{list_of}:detail", which)
    compared = Batch.objects.filter(name="grid", **which)
    yield "batch of 100 jobs", [reverse("batches:detail", args=[one.uid]) for one in compared]
    yield "batch: CSV", [reverse("batches:table", args=[one.uid]) for one in compared]
    yield "notifications", [reverse("notifications:list")]
    yield "notifications: bell", [reverse("notifications:bell")]
    yield "notifications: settings", [reverse("notifications:settings")]


def _details(model: type[Model], name: str, which: dict[str, User]) -> list[str]:
    uids = model._default_manager.filter(**which).values_list("uid", flat=True)[:OTHERS]
    return [reverse(name, args=[uid]) for uid in uids]


def _queues_and_nodes(jobs: Sequence[Job], user: User) -> Iterator[Page]:
    queue, cluster = jobs[0].queue.name, jobs[0].cluster.name
    yield "queues", [reverse("queues:list")]
    yield "queue", [reverse("queues:detail", args=[one.queue.name]) for one in jobs]
    yield "nodes", [reverse("clusters:nodes")]
    yield "nodes: search", [f"{reverse('clusters:nodes')}?q=node-7"]
    nodes = Node.objects.order_by("pk").values_list("pk", flat=True)[:OTHERS]
    yield "node", [reverse("clusters:node", args=[node]) for node in nodes]
    yield "federated queues", [reverse("federated_queues:list")]
    yield "priority classes", [reverse("priorities:list")]
    if user.platform_role:
        yield "clusters", [reverse("clusters:list")]
        yield "cluster", [reverse("clusters:detail", args=[cluster])]
        yield "queue: edit", [reverse("queues:edit", args=[queue])]
        yield "cluster: edit", [reverse("clusters:edit", args=[cluster])]
        yield "scheduling policy", [reverse("clusters:policy")]
        yield "environments", [reverse("clusters:environments")]


def _people(job: Job, user: User) -> Iterator[Page]:
    yield "profile", [reverse("accounts:profile")]
    yield "tenants", [reverse("tenancy:list")]
    yield "tenant", [reverse("tenancy:detail", args=[job.tenant.slug])]
    yield "demonstrations", [reverse("demonstrations:list")]
    yield "help", [reverse("help:index")]
    if user.platform_role:
        yield "people", [reverse("accounts:list")]
        yield "people: search", [f"{reverse('accounts:list')}?q=person-7"]
        yield "person", [reverse("accounts:edit", args=[job.owner_id])]
        yield "tenant: quotas", [reverse("tenancy:quotas", args=[job.tenant.slug])]
        yield "tenant: invitations", [reverse("invitations:list", args=[job.tenant.slug])]
        yield "departments", [reverse("departments:list")]
        yield "roles", [reverse("roles")]
        yield from _audit(job)


def _audit(job: Job) -> Iterator[Page]:
    place, day = reverse("audit"), f"{job.submitted_at:%Y-%m-%d}"
    yield "audit", [place]
    for what, query in {
        "person": f"person={job.owner.username}",
        "kind": "kind=QueueCreated",
        "tenant": f"tenant={job.tenant.slug}",
        "object, one": f"object={job.name}",
        "object, many": "object=llama",
        "object, none": "object=nothingofthekind",
        "subject": f"object=job:{job.uid}",
        "day": f"since={day}&until={day}",
        "day and object": f"since={day}&until={day}&object=bert",
    }.items():
        yield f"audit: {what}", [f"{place}?{query}"]


def _rest(jobs: Sequence[Job], user: User) -> Iterator[Page]:
    place = reverse("api:v1:jobs")
    yield "REST jobs", [place]
    yield "REST jobs: phase, queue", [f"{place}?phase=failed&queue={one.queue.name}" for one in jobs]
    yield "REST jobs: groups", [f"{reverse('api:v1:job_groups')}?by=queue"]
    for what in ("job", "job_events", "job_waits", "job_receipts"):
        yield f"REST {what.replace('_', ' ')}", [reverse(f"api:v1:{what}", args=[one.uid]) for one in jobs]
    for what in (
        *("queues", "nodes", "clusters", "batches", "flows", "schedules", "templates", "gallery", "saved_templates"),
        *("notifications", "tenants", "departments", "priority_classes", "federated_queues", "environments", "me"),
    ):
        yield f"REST {what.replace('_', ' ')}", [reverse(f"api:v1:{what}")]
    yield "REST queue", [reverse("api:v1:queue", args=[one.queue.name]) for one in jobs]
    yield "REST search", [f"{reverse('api:v1:search')}?q=llama"]
    if user.platform_role:
        yield "REST audit", [reverse("api:v1:audit")]
        yield "REST audit: object", [f"{reverse('api:v1:audit')}?object=llama"]
