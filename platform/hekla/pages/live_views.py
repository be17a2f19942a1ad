"""The live parts of pages, rendered anew for one person whenever something that concerns them happened."""

from uuid import UUID

from django.http import QueryDict
from django.template.loader import render_to_string

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.batches import selectors as batches
from hekla.apps.clusters import selectors as clusters
from hekla.apps.demonstrations import catalogue as demonstrations
from hekla.apps.flows import overview as flows_shown
from hekla.apps.flows import selectors as flows
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs.models import Pod
from hekla.apps.notifications import selectors as notifications
from hekla.apps.queues import selectors as queues
from hekla.apps.schedules import overview as schedules_shown
from hekla.apps.schedules import selectors as schedules
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.selectors import Standing
from hekla.domain.errors import NotFound
from hekla.lib import clock
from hekla.live.registry import LiveView, Params, register
from hekla.pages.batches import context as batches_shown
from hekla.pages.clusters import views
from hekla.pages.clusters.node_views import node_parts
from hekla.pages.demonstrations import context as demonstrations_shown
from hekla.pages.flows.views import list_context as flow_list
from hekla.pages.home.views import home_free, home_jobs, home_queues
from hekla.pages.jobs import context as shown
from hekla.pages.jobs import list_context, pod_context
from hekla.pages.queues import views as queue_pages

_QUEUES, _MACHINES = frozenset({"queues"}), frozenset({"machines"})


def _uid(params: Params) -> UUID:
    try:
        return UUID(params.get("uid", ""))
    except ValueError as error:
        raise NotFound("There is no such page.") from error


def _everybody(_user: User, _params: Params) -> None:
    """Whoever sees it is shown the same."""


def _standing(user: User, _params: Params) -> Standing:
    """Shown to those who have the same roles everywhere."""
    return tenancy.standings([user.pk])[user.pk]


def _job_topics(_user: User, params: Params) -> frozenset[str]:
    """Whether the person may see it, its audience has asked."""
    return frozenset({f"job:{_uid(params)}"})


def _job(user: User, params: Params) -> str:
    rights = tenancy.rights(user)
    job = jobs.get(_uid(params), user, rights)
    return render_to_string("jobs/_live.html", shown.detail(job, params, may_act=jobs.acting(user, rights)(job)))


def _job_audience(user: User, params: Params) -> bool:
    """Those who may act on it, and those who may only look."""
    rights = tenancy.rights(user)
    return jobs.acting(user, rights)(jobs.get(_uid(params), user, rights))


def _pod_of(user: User, params: Params) -> Pod:
    text = params.get("pod", "")
    pod = jobs.pod(int(text), user) if text.isdigit() and len(text) < 19 else None  # noqa: PLR2004
    if pod is None or pod.job.uid != _uid(params):
        raise NotFound("There is no such pod.")
    return pod


def _pod_topics(user: User, params: Params) -> frozenset[str]:
    return frozenset({f"job:{_pod_of(user, params).job.uid}"})


def _pod(user: User, params: Params) -> str:
    return render_to_string("jobs/_pod_live.html", pod_context.page(_pod_of(user, params), now=clock.now()))


def _tenant_topics(user: User, _params: Params) -> frozenset[str]:
    """All that happens in the tenants that one may see."""
    return frozenset(f"tenant:{pk}" for pk in tenancy.visible_to(user).values_list("pk", flat=True))


def _list(user: User, params: Params) -> str:
    context = list_context.context(QueryDict(params.get("query", "")[:2000]), user)
    return render_to_string("jobs/_list.html", context) + render_to_string("jobs/_phases.html", context)


def _cluster_topics(user: User, _params: Params) -> frozenset[str]:
    """All that happens in any cluster: what is free is everybody's business."""
    own = _tenant_topics(user, _params)
    return own | frozenset(f"cluster:{pk}" for pk in clusters.all_clusters().values_list("pk", flat=True))


def _flow_topics(user: User, params: Params) -> frozenset[str]:
    """All that happens in its tenant: which jobs it will have is not known yet."""
    return frozenset({f"tenant:{flows.get(_uid(params), user).tenant_id}"})


def _flow(user: User, params: Params) -> str:
    return render_to_string("flows/_live.html", flows_shown.detail(flows.get(_uid(params), user), user))


def _flows(user: User, params: Params) -> str:
    return render_to_string("flows/_list.html", flow_list(user, params.get("page", "")))


def _own_topics(user: User, _params: Params) -> frozenset[str]:
    return frozenset({f"owner:{user.pk}"})


def _home_jobs(user: User, _params: Params) -> str:
    return render_to_string("_home_jobs.html", home_jobs(user))


def _home_queues(user: User, _params: Params) -> str:
    return render_to_string("_home_queues.html", home_queues(user))


def _free_topics(_user: User, _params: Params) -> frozenset[str]:
    """What happens to any cluster: what is free is everybody's business."""
    return _MACHINES | {f"cluster:{pk}" for pk in clusters.all_clusters().values_list("pk", flat=True)}


def _home_free(_user: User, _params: Params) -> str:
    return render_to_string("_home_free.html", home_free())


def _queues_topics(user: User, _params: Params) -> frozenset[str]:
    """What happens in the queues that one may see, to them, and to the machines."""
    return _QUEUES | _MACHINES | {f"queue:{pk}" for pk in _queues_seen(user, _params)}


def _queues_seen(user: User, _params: Params) -> tuple[int, ...]:
    """Shown to those who may see the same queues."""
    return tuple(queues.visible_to(user).order_by("pk").values_list("pk", flat=True))


def _queues_audience(user: User, params: Params) -> tuple[tuple[int, ...], bool]:
    return _queues_seen(user, params), flags(user)["may_manage_queues"]


def _queue_topics(user: User, params: Params) -> frozenset[str]:
    return frozenset({f"queue:{queues.get(params.get('name', ''), user).pk}"})


def _queues(user: User, _params: Params) -> str:
    return render_to_string("queues/_list.html", queue_pages.all_parts(user) | {"nav": flags(user)})


def _queue(user: User, params: Params) -> str:
    return render_to_string("queues/_detail.html", queue_pages.parts(params.get("name", ""), user))


def _nodes(user: User, params: Params) -> str:
    return render_to_string("clusters/_nodes.html", node_parts(user, params.get("page", "")) | {"nav": flags(user)})


def _demonstration_topics(_user: User, params: Params) -> frozenset[str]:
    """All that happens on its machines; whoever sees none of it is sent the page as it was."""
    stage = demonstrations.get(params.get("name", "")).stage
    return frozenset(
        f"cluster:{pk}" for pk in clusters.all_clusters().filter(name=stage.name).values_list("pk", flat=True)
    )


def _demonstration(user: User, params: Params) -> str:
    context = demonstrations_shown.detail(params.get("name", ""), user)
    return render_to_string("demonstrations/_run.html", context)


def _batches(user: User, _params: Params) -> str:
    return render_to_string("batches/_list.html", {"rows": batches_shown.rows(user)})


def _batch_topics(user: User, params: Params) -> frozenset[str]:
    """Its own topic, and its tenant's: what its jobs do is told there."""
    batch = batches.get(_uid(params), user)
    return frozenset({f"batch:{batch.uid}", f"tenant:{batch.tenant_id}"})


def _batch(user: User, params: Params) -> str:
    query = QueryDict(params.get("query", "")[:2000])
    return render_to_string("batches/_live.html", batches_shown.detail(batches.get(_uid(params), user), user, query))


def _schedules(user: User, _params: Params) -> str:
    return render_to_string("schedules/_list.html", {"rows": schedules_shown.rows(user)})


def _schedule_topics(user: User, params: Params) -> frozenset[str]:
    """Its own topic, and its tenant's: what its jobs do is told there."""
    schedule = schedules.get(_uid(params), user)
    return frozenset({f"schedule:{schedule.uid}", f"tenant:{schedule.tenant_id}"})


def _schedule(user: User, params: Params) -> str:
    context = schedules_shown.detail(schedules.get(_uid(params), user), user, now=clock.now())
    return render_to_string("schedules/_live.html", context)


def _bell_topics(user: User, _params: Params) -> frozenset[str]:
    return frozenset({f"bell:{user.pk}"})


def _bell(user: User, _params: Params) -> str:
    return render_to_string("notifications/_bell.html", {"unread": notifications.unread(user)})


def _managers(user: User, _params: Params) -> None:
    """Whoever may manage clusters is shown the same. Raises NotFound for all others."""
    if not accounts.may(user, Permission.MANAGE_CLUSTERS):
        raise NotFound("There is no such page.")


def _managed_topic(_user: User, params: Params) -> frozenset[str]:
    return frozenset({f"cluster:{clusters.get(params.get('name', '')).pk}"})


def _clusters(user: User, _params: Params) -> str:
    return render_to_string("clusters/_list.html", views.all_parts(user))


def _cluster(user: User, params: Params) -> str:
    return render_to_string("clusters/_detail.html", views.parts(params.get("name", ""), user))


def flags(user: User) -> dict[str, bool]:
    """What of `nav` the live parts ask."""
    return {
        "may_manage_clusters": accounts.may(user, Permission.MANAGE_CLUSTERS),
        "may_manage_queues": accounts.may(user, Permission.MANAGE_QUEUES),
    }


def register_all() -> None:
    """Make the pages live."""
    register("job", LiveView(_job_topics, _job, _job_audience))
    register("pod", LiveView(_pod_topics, _pod, _everybody))
    register("jobs", LiveView(_tenant_topics, _list))
    register("flow", LiveView(_flow_topics, _flow))
    register("flows", LiveView(_tenant_topics, _flows))
    register(
        "home",
        LiveView(_own_topics, _home_jobs),
        LiveView(_queues_topics, _home_queues, _queues_seen, anew=_QUEUES),
        LiveView(_free_topics, _home_free, _everybody),
    )
    register("queues", LiveView(_queues_topics, _queues, _queues_audience, anew=_QUEUES))
    register("queue", LiveView(_queue_topics, _queue, _standing))
    register("demonstration", LiveView(_demonstration_topics, _demonstration))
    register("batches", LiveView(_tenant_topics, _batches))
    register("batch", LiveView(_batch_topics, _batch))
    register("schedules", LiveView(_tenant_topics, _schedules))
    register("schedule", LiveView(_schedule_topics, _schedule))
    register("bell", LiveView(_bell_topics, _bell))
    register("nodes", LiveView(_cluster_topics, _nodes, _standing))
    register("clusters", LiveView(_free_topics, _clusters, _managers))
    register("cluster", LiveView(_managed_topic, _cluster, _managers))
