"""All addresses. An app declares its own; this file joins them, and adds the pages that need several apps."""

from django.urls import URLPattern, URLResolver, include, path

from hekla.pages.audit.views import show as audit
from hekla.pages.clusters import node_views, policy_views
from hekla.pages.clusters import views as cluster_pages
from hekla.pages.departments import views as department_views
from hekla.pages.design import views as design
from hekla.pages.health import views as health
from hekla.pages.help import views as help_pages
from hekla.pages.home import needs, views
from hekla.pages.metrics.views import show as metrics
from hekla.pages.queues import preview
from hekla.pages.queues import views as queue_pages
from hekla.pages.quotas import views as quota_pages
from hekla.pages.submit import views as submit_pages
from hekla.pages.tenancy.views import roles
from hekla.pages.what_if import reclaim_risk
from hekla.pages.what_if import views as foresight_pages

_accounts: list[URLPattern | URLResolver] = [
    path("", include("hekla.pages.signin.urls")),
    path("", include("hekla.pages.identities.urls")),
    path("", include("hekla.pages.login_sessions.urls")),
    path("", include("hekla.pages.impersonation.urls")),
    path("", include("hekla.pages.accounts.urls")),
]
_clusters: list[URLPattern | URLResolver] = [
    path("nodes/", node_views.nodes, name="nodes"),
    path("policy/", policy_views.show, name="policy"),
    path("new/", cluster_pages.create, name="create"),
    path("", include("hekla.pages.clusters.urls")),
    path("", cluster_pages.show_all, name="list"),
    path("<slug:name>/", cluster_pages.show, name="detail"),
    path("<slug:name>/edit/", cluster_pages.edit, name="edit"),
    path("<slug:name>/remove/", cluster_pages.remove, name="remove"),
    path("<slug:name>/key/remove/", cluster_pages.remove_key, name="remove_key"),
]
_tenants: list[URLPattern | URLResolver] = [
    path("", include("hekla.pages.tenancy.urls")),
    path("<slug:slug>/quotas/", quota_pages.show, name="quotas"),
]
_queues: list[URLPattern | URLResolver] = [
    path("", queue_pages.show_all, name="list"),
    path("new/preview/", preview.of_new, name="preview_new"),
    path("<slug:name>/preview/", preview.of_change, name="preview"),
    path("", include("hekla.pages.queues.urls")),
    path("<slug:name>/", queue_pages.show, name="detail"),
]
_jobs: list[URLPattern | URLResolver] = [
    path("submit/", submit_pages.submit, name="submit"),
    path("submit/yaml/", submit_pages.submit_yaml, name="submit_yaml"),
    path("", include("hekla.pages.jobs.urls")),
]
_departments: list[URLPattern | URLResolver] = [
    path("", include("hekla.pages.departments.urls")),
    path("<slug:slug>/", department_views.detail, name="detail"),
]

handler400 = "hekla.pages.frame.errors.bad_request"

urlpatterns = [
    path("", views.home, name="home"),
    path("home/needs/", needs.show, name="home_needs"),
    path("metrics", metrics, name="metrics"),
    path("healthz", health.health, name="health"),
    path("livez", health.live, name="live"),
    path("readyz", health.ready, name="ready"),
    path("favicon.ico", views.favicon, name="favicon"),
    path("design/", design.show, name="design"),
    path("examples/<slug:name>/run/", views.run_example, name="run_example"),
    path("language/", views.set_language_for_all, name="set_language"),
    path("help/", include((help_pages.urlpatterns, "help"))),
    path("accounts/", include((_accounts, "accounts"))),
    path("audit/", audit, name="audit"),
    path("roles/", roles, name="roles"),
    path("tenants/", include((_tenants, "tenancy"))),
    path("", include("hekla.pages.invitations.urls")),
    path("departments/", include((_departments, "departments"))),
    path("clusters/", include((_clusters, "clusters"))),
    path("queues/", include((_queues, "queues"))),
    path("spans/", include("hekla.pages.federated_queues.urls")),
    path("priority-classes/", include("hekla.pages.priorities.urls")),
    path("jobs/what-if/", foresight_pages.what_if, name="jobs_what_if"),
    path("jobs/what-if/when/", foresight_pages.when, name="jobs_what_if_when"),
    path("jobs/what-if/take/", foresight_pages.take, name="jobs_what_if_take"),
    path("jobs/<uuid:uid>/unblock/", foresight_pages.unblock, name="job_unblock"),
    path("jobs/<uuid:uid>/ease/", foresight_pages.ease, name="job_ease"),
    path("jobs/<uuid:uid>/exposure/", reclaim_risk.part, name="exposure"),
    path("jobs/", include((_jobs, "jobs"))),
    path("gallery/", include("hekla.pages.gallery.urls")),
    path("flows/", include("hekla.pages.flows.urls")),
    path("batches/", include("hekla.pages.batches.urls")),
    path("schedules/", include("hekla.pages.schedules.urls")),
    path("notifications/", include("hekla.pages.notifications.urls")),
    path("use/", include("hekla.pages.usage.urls")),
    path("demonstrations/", include("hekla.pages.demonstrations.urls")),
    path("search/", include("hekla.pages.search.urls")),
    path("api/", include("hekla.api.urls")),
    path("rest-server/api/", include("hekla.api.openpai.urls")),
    path("live/", include("hekla.pages.logs.urls")),
]
