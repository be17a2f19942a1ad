from django.urls import path

from hekla.pages.lazy_views import LazyViews

draining = LazyViews("hekla.pages.clusters.draining")
environment_views = LazyViews("hekla.pages.clusters.environment_views")
label_views = LazyViews("hekla.pages.clusters.label_views")
node_views = LazyViews("hekla.pages.clusters.node_views")
policy_views = LazyViews("hekla.pages.clusters.policy_views")
views = LazyViews("hekla.pages.clusters.views")
prefix = "clusters/"
app_name = "clusters"
urlpatterns = [
    path("", views.show_all, name="list"),
    path("nodes/", node_views.nodes, name="nodes"),
    path("nodes/<int:node_id>/", node_views.show, name="node"),
    path("nodes/<int:node_id>/cordon/", environment_views.cordon, name="cordon"),
    path("nodes/<int:node_id>/labels/", label_views.labels, name="labels"),
    path("nodes/<int:node_id>/drain/", draining.drain, name="drain"),
    path("environments/", environment_views.environments, name="environments"),
    path("environments/new/", environment_views.create_environment, name="create_environment"),
    path("environments/<slug:name>/", environment_views.edit_environment, name="edit_environment"),
    path("policy/", policy_views.show, name="policy"),
    path("new/", views.create, name="create"),
    path("<slug:name>/", views.show, name="detail"),
    path("<slug:name>/edit/", views.edit, name="edit"),
    path("<slug:name>/remove/", views.remove, name="remove"),
    path("<slug:name>/metrics-token/", views.set_metrics_token, name="metrics_token"),
    path("<slug:name>/key/remove/", views.remove_key, name="remove_key"),
]
