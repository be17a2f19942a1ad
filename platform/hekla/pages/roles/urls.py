from django.urls import path

from hekla.pages.roles import views

prefix = ""
urlpatterns = [
    path("roles/", views.roles, name="roles"),
]
