from django.urls import path

from hekla.pages.policy_lab import traces, views

prefix = "policy-lab/"
app_name = "policy_lab"
urlpatterns = [
    path("", views.show_all, name="list"),
    path("new/", views.create, name="create"),
    path("traces/", traces.show_all, name="traces"),
    path("traces/<uuid:uid>/", traces.show, name="trace"),
    path("traces/<uuid:uid>/delete/", traces.delete, name="delete_trace"),
    path("<uuid:uid>/", views.show, name="detail"),
    path("<uuid:uid>/state/", views.state, name="state"),
    path("<uuid:uid>/cancel/", views.cancel, name="cancel"),
    path("<uuid:uid>/delete/", views.delete, name="delete"),
]
