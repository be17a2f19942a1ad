"""All addresses. An app declares its own; this file joins them, and adds the pages that need several apps."""

from django.urls import URLPattern, URLResolver, include, path

from hekla.project import design, help_pages, views

_clusters: list[URLPattern | URLResolver] = [
    path("nodes/", views.nodes, name="nodes"),
    path("policy/", views.scheduling_policy, name="policy"),
    path("", include("hekla.apps.clusters.urls")),
]
_queues: list[URLPattern | URLResolver] = [
    path("", views.queue_list, name="list"),
    path("", include("hekla.apps.queues.urls")),
    path("<slug:name>/", views.queue_detail, name="detail"),
]

handler400 = "hekla.project.refusals.bad_request"

urlpatterns = [
    path("", views.home, name="home"),
    path("healthz", views.health, name="health"),
    path("favicon.ico", views.favicon, name="favicon"),
    path("design/", design.show, name="design"),
    path("examples/<slug:name>/run/", views.run_example, name="run_example"),
    path("language/", views.set_language_for_all, name="set_language"),
    path("help/", include((help_pages.urlpatterns, "help"))),
    path("accounts/", include("hekla.apps.accounts.urls")),
    path("tenants/", include("hekla.apps.tenancy.urls")),
    path("clusters/", include((_clusters, "clusters"))),
    path("queues/", include((_queues, "queues"))),
    path("jobs/", include("hekla.apps.jobs.urls")),
    path("flows/", include("hekla.apps.flows.urls")),
    path("batches/", include("hekla.apps.batches.urls")),
    path("schedules/", include("hekla.apps.schedules.urls")),
    path("use/", include("hekla.apps.usage.urls")),
    path("demonstrations/", include("hekla.apps.demonstrations.urls")),
    path("api/", include("hekla.api.urls")),
    path("rest-server/api/", include("hekla.api.openpai.urls")),
    path("live/", include("hekla.live.urls")),
]
