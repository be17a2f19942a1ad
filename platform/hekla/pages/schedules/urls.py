from django.urls import path

from hekla.pages.lazy_views import LazyViews

views = LazyViews("hekla.pages.schedules.views")
prefix = "schedules/"
app_name = "schedules"
urlpatterns = [
    path("", views.schedules, name="list"),
    path("new/", views.create, name="create"),
    path("new/yaml/", views.create_yaml, name="create_yaml"),
    path("<uuid:uid>/", views.detail, name="detail"),
    path("<uuid:uid>/edit/", views.edit, name="edit"),
    path("<uuid:uid>/suspend/", views.suspend, name="suspend"),
    path("<uuid:uid>/run/", views.run, name="run"),
    path("<uuid:uid>/delete/", views.delete, name="delete"),
    path("<uuid:uid>/manifest/", views.manifest, name="manifest"),
]
