from django.urls import path

from hekla.apps.tenancy import department_views as views

urlpatterns = [
    path("", views.listed, name="list"),
    path("new/", views.create, name="create"),
    path("<slug:slug>/edit/", views.edit, name="edit"),
]
