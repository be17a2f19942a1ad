from django.urls import path

from hekla.pages.lazy_views import LazyViews

edit = LazyViews("hekla.pages.alerts.edit")
views = LazyViews("hekla.pages.alerts.views")
prefix = "alerts/"
app_name = "alerts"
urlpatterns = [
    path("", views.alerts, name="list"),
    path("new/", edit.create, name="create"),
    path("new/<slug:slug>/", edit.create_for, name="create_for"),
    path("<uuid:uid>/", views.detail, name="detail"),
    path("<uuid:uid>/edit/", edit.edit, name="edit"),
    path("<uuid:uid>/enable/", views.enable, name="enable"),
    path("<uuid:uid>/silence/", views.silence, name="silence"),
    path("<uuid:uid>/secret/", views.renew_secret, name="renew_secret"),
    path("actions/<uuid:uid>/veto/", views.veto, name="veto"),
    path("<uuid:uid>/delete/", views.delete, name="delete"),
]
