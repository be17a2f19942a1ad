from django.urls import path

from hekla.pages.lazy_views import LazyViews

views = LazyViews("hekla.pages.runs.views")
prefix = "compare/"
app_name = "runs"
urlpatterns = [
    path("", views.compare, name="compare"),
    path("file/", views.table_file, name="table"),
]
