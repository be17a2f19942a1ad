from django.urls import path

from hekla.pages.lazy_views import LazyViews

views = LazyViews("hekla.pages.quotas.views")
prefix = "tenants/"
app_name = "tenancy"
urlpatterns = [
    path("<slug:slug>/quotas/", views.show, name="quotas"),
]
