from django.urls import path

from hekla.pages.operations import node_views, queue_views, views, wall_views

prefix = "operations/"
app_name = "operations"
urlpatterns = [
    path("gpu-time/", views.gpu_time, name="gpu_time"),
    path("gpu-time/file/", views.gpu_time_file, name="gpu_time_file"),
    path("gpu-time/pods/", views.holdings, name="holdings"),
    path("queues/", queue_views.show, name="queues"),
    path("queues/file/", queue_views.download, name="queues_file"),
    path("wall/", wall_views.show, name="wall"),
    path("wall/state/", wall_views.state, name="wall_state"),
    path("nodes/", node_views.show, name="nodes"),
    path("waste/", views.waste, name="waste"),
]
