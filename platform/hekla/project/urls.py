"""All addresses. A page is declared in its app; this file only joins them."""

from django.urls import include, path

from hekla.project import views

urlpatterns = [
    path("", views.home, name="home"),
    path("healthz", views.health, name="health"),
    path("design/", views.design, name="design"),
    path("examples/<slug:name>/run", views.run_example, name="run_example"),
    path("language/", views.set_language_for_all, name="set_language"),
    path("help/", include("hekla.project.help.urls")),
    path("accounts/", include("hekla.apps.accounts.urls")),
    path("tenants/", include("hekla.apps.tenancy.urls")),
    path("clusters/", include("hekla.apps.clusters.urls")),
    path("queues/", include("hekla.apps.queues.urls")),
    path("jobs/", include("hekla.apps.jobs.urls")),
    path("api/", include("hekla.api.urls")),
    path("live/", include("hekla.live.urls")),
]
