from django.urls import path

from hekla.apps.jobs import views

app_name = "jobs"
urlpatterns = [
    path("", views.jobs, name="list"),
    path("submit/", views.submit, name="submit"),
    path("submit/yaml/", views.submit_yaml, name="submit_yaml"),
    path("<uuid:uid>/", views.detail, name="detail"),
    path("<uuid:uid>/timeline/", views.timeline, name="timeline"),
    path("<uuid:uid>/pods/<int:pod_id>/", views.pod, name="pod"),
    path("<uuid:uid>/command/", views.command, name="command"),
    path("<uuid:uid>/scale/", views.scale, name="scale"),
    path("<uuid:uid>/delete/", views.delete, name="delete"),
    path("<uuid:uid>/export/", views.export, name="export"),
    path("<uuid:uid>/manifest/", views.manifest, name="manifest"),
]
