"""The live views of the home page."""

from django.template.loader import render_to_string

from hekla.apps.accounts.models import User
from hekla.live.registry import LiveView, Params
from hekla.pages.frame.topics import cluster_topics, owner_topics
from hekla.pages.home.resources import home_free
from hekla.pages.home.views import home_jobs, home_queues
from hekla.pages.queues import figures
from hekla.pages.queues.live import QUEUES, queues_topics, visible_queues
from hekla.scheduling import occupancy


def _home_jobs(user: User, _params: Params) -> str:
    return render_to_string("_home_jobs.html", home_jobs(user))


def _home_queues(user: User, _params: Params) -> str:
    return render_to_string("_home_queues.html", home_queues(figures.queue_views(user, occupancy.now())))


def _home_free(user: User, _params: Params) -> str:
    whole = occupancy.now()
    return render_to_string("_home_free.html", home_free(figures.queue_views(user, whole), whole))


VIEWS = {
    "home": (
        LiveView(owner_topics, _home_jobs),
        LiveView(queues_topics, _home_queues, visible_queues, audience_topics=QUEUES),
        LiveView(cluster_topics, _home_free, visible_queues, audience_topics=QUEUES),
    ),
}
