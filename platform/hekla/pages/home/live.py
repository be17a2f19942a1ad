"""The live views of the home page."""

from django.template.loader import render_to_string

from hekla.apps.accounts.models import User
from hekla.live.registry import LiveView, Params
from hekla.pages.frame.topics import cluster_topics, everybody, owner_topics
from hekla.pages.home.views import home_free, home_jobs, home_queues
from hekla.pages.queues.live import QUEUES, queues_topics, visible_queues


def _home_jobs(user: User, _params: Params) -> str:
    return render_to_string("_home_jobs.html", home_jobs(user))


def _home_queues(user: User, _params: Params) -> str:
    return render_to_string("_home_queues.html", home_queues(user))


def _home_free(_user: User, _params: Params) -> str:
    return render_to_string("_home_free.html", home_free())


VIEWS = {
    "home": (
        LiveView(owner_topics, _home_jobs),
        LiveView(queues_topics, _home_queues, visible_queues, audience_topics=QUEUES),
        LiveView(cluster_topics, _home_free, everybody),
    ),
}
