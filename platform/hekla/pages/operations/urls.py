from django.urls import path

from hekla.pages.operations import (
    cost_views,
    job_views,
    node_views,
    overview_views,
    queue_views,
    session_views,
    stall_views,
    views,
    wall_views,
)

prefix = "operations/"
app_name = "operations"
urlpatterns = [
    path("", overview_views.show, name="overview"),
    path("arrange/", overview_views.arrange, name="arrange"),
    path("file/", overview_views.download, name="overview_file"),
    path("gpu-time/", views.gpu_time, name="gpu_time"),
    path("gpu-time/file/", views.gpu_time_file, name="gpu_time_file"),
    path("gpu-time/pods/", views.holdings, name="holdings"),
    path("queues/", queue_views.show, name="queues"),
    path("queues/file/", queue_views.download, name="queues_file"),
    path("wall/", wall_views.show, name="wall"),
    path("wall/state/", wall_views.state, name="wall_state"),
    path("nodes/", node_views.show, name="nodes"),
    path("waiting/", job_views.waiting, name="waiting"),
    path("waiting/file/", job_views.waiting_file, name="waiting_file"),
    path("waiting/now/", job_views.waiting_now, name="waiting_now"),
    path("failures/", job_views.failures, name="failures"),
    path("failures/file/", job_views.failures_file, name="failures_file"),
    path("jobs/", job_views.counted, name="counted"),
    path("sessions/", session_views.show, name="sessions"),
    path("sessions/file/", session_views.download, name="sessions_file"),
    path("waste/", views.waste, name="waste"),
    path("cost/", cost_views.show, name="cost"),
    path("cost/file/", cost_views.download, name="cost_file"),
    path("cost/pods/", cost_views.pods, name="cost_pods"),
    path("stalled/", stall_views.stalled, name="stalled"),
    path("stalled/<uuid:uid>/", stall_views.of_job, name="stalled_of"),
    path("remind/<uuid:uid>/", stall_views.remind, name="remind"),
]
