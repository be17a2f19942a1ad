from django.urls import path

from hekla.pages.lazy_views import LazyViews

views = LazyViews("hekla.pages.metrics.views")
prefix = ""
urlpatterns = [
    path("metrics", views.show, name="metrics"),
]
