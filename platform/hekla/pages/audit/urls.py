from django.urls import path

from hekla.pages.lazy_views import LazyViews

views = LazyViews("hekla.pages.audit.views")
prefix = ""
urlpatterns = [
    path("audit/", views.show, name="audit"),
    path("audit/file/", views.table_file, name="audit_file"),
]
