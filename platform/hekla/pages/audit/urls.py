from django.urls import path

from hekla.pages.audit import views

prefix = ""
urlpatterns = [
    path("audit/", views.show, name="audit"),
    path("audit/file/", views.table_file, name="audit_file"),
]
