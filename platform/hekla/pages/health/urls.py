from django.urls import path

from hekla.pages.health import views

prefix = ""
urlpatterns = [
    path("healthz", views.health, name="health"),
    path("livez", views.live, name="live"),
    path("readyz", views.ready, name="ready"),
]
