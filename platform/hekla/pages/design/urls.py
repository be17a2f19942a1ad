from django.urls import path

from hekla.pages.lazy_views import LazyViews

views = LazyViews("hekla.pages.design.views")
prefix = ""
urlpatterns = [
    path("design/", views.show, name="design"),
]
