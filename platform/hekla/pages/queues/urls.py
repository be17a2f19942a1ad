from django.urls import path

from hekla.pages.queues import edit_views

urlpatterns = [
    path("new/", edit_views.create, name="create"),
    path("<slug:name>/edit/", edit_views.edit, name="edit"),
    path("<slug:name>/state/", edit_views.set_state, name="set_state"),
]
