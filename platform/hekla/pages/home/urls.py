from django.urls import path

from hekla.pages.home import day, needs, views

prefix = ""
urlpatterns = [
    path("", views.home, name="home"),
    path("home/needs/", needs.show, name="home_needs"),
    path("home/day/", day.show, name="home_day"),
    path("favicon.ico", views.favicon, name="favicon"),
    path("examples/<slug:name>/run/", views.run_example, name="run_example"),
    path("language/", views.set_language_for_all, name="set_language"),
]
