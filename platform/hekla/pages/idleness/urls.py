from django.urls import path

from hekla.pages.lazy_views import LazyViews

jobs = LazyViews("hekla.pages.idleness.jobs")
views = LazyViews("hekla.pages.idleness.views")
prefix = ""
app_name = "idleness"
urlpatterns = [
    path("idle-rule/", views.platform_rule, name="platform"),
    path("jobs/<uuid:uid>/gpu-activity/", jobs.job, name="job"),
    path("jobs/<uuid:uid>/gpu-activity/keep/", jobs.keep, name="keep_job"),
    path("tenants/<slug:slug>/idle-rule/", views.tenant_rule, name="tenant"),
]
