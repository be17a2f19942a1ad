from django.urls import path

from hekla.apps.clusters import views

urlpatterns = [
    path("nodes/<int:node_id>/cordon/", views.cordon, name="cordon"),
    path("environments/", views.environments, name="environments"),
    path("environments/new/", views.create_environment, name="create_environment"),
    path("environments/<slug:name>/", views.edit_environment, name="edit_environment"),
]
