from django.urls import path

from hekla.pages.runs import views

prefix = "compare/"
app_name = "runs"
urlpatterns = [
    path("", views.compare, name="compare"),
    path("file/", views.table_file, name="table"),
]
