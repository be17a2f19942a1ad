"""All addresses. An app declares its own; this file joins them, and adds the pages that need several apps."""

from django.urls import URLPattern, URLResolver, include, path

from hekla.apps.tenancy.audit_views import show as audit
from hekla.apps.tenancy.views import roles
from hekla.project import (
    cluster_pages,
    design,
    exposure,
    foresight_pages,
    health,
    help_pages,
    needs,
    policy_page,
    queue_pages,
    queue_preview,
    quota_pages,
    submit_pages,
    views,
)
from hekla.project.metrics.views import show as metrics

_accounts: list[URLPattern | URLResolver] = [
    path("", include("hekla.apps.signin.urls")),
    path("", include("hekla.apps.identities.urls")),
    path("", include("hekla.apps.visits.urls")),
    path("", include("hekla.apps.acting.urls")),
    path("", include("hekla.apps.accounts.urls")),
]
_clusters: list[URLPattern | URLResolver] = [
    path("nodes/", views.nodes, name="nodes"),
    path("policy/", policy_page.show, name="policy"),
    path("new/", cluster_pages.create, name="create"),
    path("", include("hekla.apps.clusters.urls")),
    path("", cluster_pages.show_all, name="list"),
    path("<slug:name>/", cluster_pages.show, name="detail"),
    path("<slug:name>/edit/", cluster_pages.edit, name="edit"),
    path("<slug:name>/remove/", cluster_pages.remove, name="remove"),
    path("<slug:name>/key/remove/", cluster_pages.remove_key, name="remove_key"),
]
_tenants: list[URLPattern | URLResolver] = [
    path("", include("hekla.apps.tenancy.urls")),
    path("<slug:slug>/quotas/", quota_pages.show, name="quotas"),
]
_queues: list[URLPattern | URLResolver] = [
    path("", queue_pages.show_all, name="list"),
    path("new/preview/", queue_preview.of_new, name="preview_new"),
    path("<slug:name>/preview/", queue_preview.of_change, name="preview"),
    path("", include("hekla.apps.queues.urls")),
    path("<slug:name>/", queue_pages.show, name="detail"),
]
_jobs: list[URLPattern | URLResolver] = [
    path("submit/", submit_pages.submit, name="submit"),
    path("submit/yaml/", submit_pages.submit_yaml, name="submit_yaml"),
    path("", include("hekla.apps.jobs.urls")),
]
_departments: list[URLPattern | URLResolver] = [
    path("", include("hekla.apps.tenancy.department_urls")),
    path("<slug:slug>/", views.department_detail, name="detail"),
]

handler400 = "hekla.project.refusals.bad_request"

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
    path("", include("hekla.apps.invitations.urls")),
    path("departments/", include((_departments, "departments"))),
    path("clusters/", include((_clusters, "clusters"))),
    path("queues/", include((_queues, "queues"))),
    path("spans/", include("hekla.apps.queues.span_urls")),
    path("priority-classes/", include("hekla.apps.priorities.urls")),
    path("jobs/what-if/", foresight_pages.what_if, name="jobs_what_if"),
    path("jobs/what-if/when/", foresight_pages.when, name="jobs_what_if_when"),
    path("jobs/what-if/take/", foresight_pages.take, name="jobs_what_if_take"),
    path("jobs/<uuid:uid>/unblock/", foresight_pages.unblock, name="job_unblock"),
    path("jobs/<uuid:uid>/ease/", foresight_pages.ease, name="job_ease"),
    path("jobs/<uuid:uid>/exposure/", exposure.part, name="exposure"),
    path("jobs/", include((_jobs, "jobs"))),
    path("gallery/", include("hekla.apps.gallery.urls")),
    path("flows/", include("hekla.apps.flows.urls")),
    path("batches/", include("hekla.apps.batches.urls")),
    path("schedules/", include("hekla.apps.schedules.urls")),
    path("notifications/", include("hekla.apps.notifications.urls")),
    path("use/", include("hekla.apps.usage.urls")),
    path("demonstrations/", include("hekla.apps.demonstrations.urls")),
    path("search/", include("hekla.apps.search.urls")),
    path("api/", include("hekla.api.urls")),
    path("rest-server/api/", include("hekla.api.openpai.urls")),
    path("live/", include("hekla.live.urls")),
]
