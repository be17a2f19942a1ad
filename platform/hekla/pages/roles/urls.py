from django.urls import path

from hekla.pages.lazy_views import LazyViews

views = LazyViews("hekla.pages.roles.views")
prefix = ""
urlpatterns = [
    path("roles/", views.roles, name="roles"),
]
