from django.urls import path

from hekla.pages.departments import views

urlpatterns = [
    path("", views.listed, name="list"),
    path("new/", views.create, name="create"),
    path("<slug:slug>/edit/", views.edit, name="edit"),
]
