from django.urls import path

from hekla.pages.metrics import views

prefix = ""
urlpatterns = [
    path("metrics", views.show, name="metrics"),
]
