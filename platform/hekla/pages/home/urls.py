from django.urls import path

from hekla.pages.lazy_views import LazyViews

day = LazyViews("hekla.pages.home.day")
needs = LazyViews("hekla.pages.home.needs")
views = LazyViews("hekla.pages.home.views")
prefix = ""
urlpatterns = [
    path("", views.home, name="home"),
    path("home/needs/", needs.show, name="home_needs"),
    path("home/day/", day.show, name="home_day"),
    path("favicon.ico", views.favicon, name="favicon"),
    path("examples/<slug:name>/run/", views.run_example, name="run_example"),
    path("language/", views.set_language_for_all, name="set_language"),
]
