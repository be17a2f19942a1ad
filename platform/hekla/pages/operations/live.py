"""The live parts of dashboards: rendered again after each roll-up of what they show, at most once a minute.

A page of a past period does not change, and subscribes to nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import QueryDict
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.measures.signals import GPUS, JOBS
from hekla.domain.errors import NotFound
from hekla.lib import clock
from hekla.live.registry import LiveView, Params
from hekla.pages.frame.time_zone import known
from hekla.pages.operations import job_views, node_views, overview_views, queue_views, session_views, views


@dataclass(frozen=True, slots=True)
class LiveDashboard:
    """The topics that change a dashboard, and the context of its live parts. `parts` raises NotFound."""

    topics: frozenset[str]
    parts: Callable[[User, QueryDict, datetime], dict[str, Any]]


_OF_GPUS, _OF_JOBS = frozenset({GPUS}), frozenset({JOBS})
DASHBOARDS = {
    "overview": LiveDashboard(_OF_GPUS | _OF_JOBS, overview_views.overview_parts),
    "gpu_time": LiveDashboard(_OF_GPUS, views.gpu_time_parts),
    "waste": LiveDashboard(_OF_GPUS, views.waste_parts),
    "queues": LiveDashboard(_OF_GPUS, queue_views.queue_parts),
    "nodes": LiveDashboard(_OF_GPUS, node_views.node_parts),
    "sessions": LiveDashboard(_OF_GPUS, session_views.session_parts),
    "waiting": LiveDashboard(_OF_JOBS, job_views.waiting_parts),
    "failures": LiveDashboard(_OF_JOBS, job_views.failures_parts),
}
"""By the name of their template and route."""


def _dashboard(params: Params) -> LiveDashboard:
    found = DASHBOARDS.get(params.get("page", ""))
    if found is None:
        raise NotFound(_("Unknown page."))
    return found


def _topics(_user: User, params: Params) -> frozenset[str]:
    return _dashboard(params).topics


def _render(user: User, params: Params) -> str:
    query = QueryDict(mutable=True)
    query.update(params)
    with timezone.override(known(user.time_zone)):
        context = _dashboard(params).parts(user, query, clock.now())
        return render_to_string(f"operations/{params['page']}.html", context | {"frame": "operations/_fragment.html"})


VIEWS = {"operations": (LiveView(_topics, _render),)}
