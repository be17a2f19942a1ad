from django.urls import path

from hekla.pages.lazy_views import LazyViews

frozen_views = LazyViews("hekla.pages.jobs.frozen_views")
list_views = LazyViews("hekla.pages.jobs.list_views")
terminal_views = LazyViews("hekla.pages.jobs.terminal_views")
views = LazyViews("hekla.pages.jobs.views")
prefix = "jobs/"
app_name = "jobs"
urlpatterns = [
    path("", list_views.jobs, name="list"),
    path("file/", list_views.table_file, name="list_file"),
    path("act/", list_views.act, name="act_on_all"),
    path("compare/", list_views.compare, name="compare"),
    path("arrange/", list_views.arrange, name="arrange"),
    path("views/", list_views.save_view, name="save_view"),
    path("views/<int:pk>/delete/", list_views.delete_view, name="delete_view"),
    path("<uuid:uid>/", views.detail, name="detail"),
    path("<uuid:uid>/timeline/", views.timeline, name="timeline"),
    path("<uuid:uid>/pods/<int:pod_id>/", views.pod, name="pod"),
    path("<uuid:uid>/pods/<int:pod_id>/terminal/", terminal_views.terminal, name="terminal"),
    path("<uuid:uid>/pods/<int:pod_id>/frozen/", frozen_views.act, name="frozen"),
    path("<uuid:uid>/command/", views.command, name="command"),
    path("<uuid:uid>/retry/", views.retry, name="retry"),
    path("<uuid:uid>/scale/", views.scale, name="scale"),
    path("<uuid:uid>/priority/", views.priority, name="priority"),
    path("<uuid:uid>/delete/", views.delete, name="delete"),
    path("<uuid:uid>/export/", views.export, name="export"),
    path("<uuid:uid>/manifest/", views.manifest, name="manifest"),
]
