from django.urls import path

from hekla.pages.lazy_views import LazyViews

views = LazyViews("hekla.pages.tenant_files.views")
prefix = "tenants/"
app_name = "tenancy"
urlpatterns = [
    path("<slug:slug>/files/", views.show, name="files"),
]
