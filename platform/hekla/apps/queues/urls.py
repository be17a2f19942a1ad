from django.urls import path

from hekla.apps.queues import views

urlpatterns = [
    path("new/", views.create, name="create"),
    path("<slug:name>/edit/", views.edit, name="edit"),
    path("<slug:name>/state/", views.set_state, name="set_state"),
]
