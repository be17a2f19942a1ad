from django.urls import path

from hekla.pages.what_if import job_cost, reclaim_risk, views

prefix = "jobs/"
urlpatterns = [
    path("what-if/", views.what_if, name="jobs_what_if"),
    path("what-if/when/", views.when, name="jobs_what_if_when"),
    path("what-if/take/", views.take, name="jobs_what_if_take"),
    path("<uuid:uid>/unblock/", views.unblock, name="job_unblock"),
    path("<uuid:uid>/ease/", views.ease, name="job_ease"),
    path("<uuid:uid>/reclaim-risk/", reclaim_risk.part, name="reclaim_risk"),
    path("<uuid:uid>/cost/", job_cost.part, name="job_cost"),
]
