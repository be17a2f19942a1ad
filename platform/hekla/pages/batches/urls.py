from django.urls import path

from hekla.pages.lazy_views import LazyViews

views = LazyViews("hekla.pages.batches.views")
prefix = "batches/"
app_name = "batches"
urlpatterns = [
    path("", views.batches, name="list"),
    path("new/", views.sweep, name="sweep"),
    path("new/file/", views.file, name="file"),
    path("<uuid:uid>/", views.detail, name="detail"),
    path("<uuid:uid>/table.csv", views.table, name="table"),
    path("<uuid:uid>/stop/", views.stop, name="stop"),
    path("<uuid:uid>/retry/", views.retry, name="retry"),
]
