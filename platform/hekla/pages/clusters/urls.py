from django.urls import path

from hekla.pages.clusters import environment_views

urlpatterns = [
    path("nodes/<int:node_id>/cordon/", environment_views.cordon, name="cordon"),
    path("environments/", environment_views.environments, name="environments"),
    path("environments/new/", environment_views.create_environment, name="create_environment"),
    path("environments/<slug:name>/", environment_views.edit_environment, name="edit_environment"),
]
