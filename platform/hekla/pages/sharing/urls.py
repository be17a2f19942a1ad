from django.urls import path

from hekla.pages.lazy_views import LazyViews

fork_views = LazyViews("hekla.pages.sharing.fork_views")
recording_views = LazyViews("hekla.pages.sharing.recording_views")
views = LazyViews("hekla.pages.sharing.views")
prefix = ""
app_name = "sharing"
urlpatterns = [
    path("shared/", views.mine, name="mine"),
    path("shared/<uuid:uid>/accept/", views.accept, name="accept"),
    path("shared/<uuid:uid>/decline/", views.decline, name="decline"),
    path("shared/<uuid:uid>/enter/", views.enter, name="enter"),
    path("shared/<uuid:uid>/end/", views.end, name="end"),
    path("shared/<uuid:uid>/revoke/", views.revoke, name="revoke"),
    path("terminals/<uuid:uid>/share/", views.terminal, name="terminal"),
    path("sessions/<uuid:uid>/share/", views.session, name="session"),
    path("jobs/<uuid:uid>/shared/", views.of_job, name="of_job"),
    path("jobs/<uuid:uid>/pods/<int:pod_id>/fork/", fork_views.fork, name="fork"),
    path("recordings/<uuid:uid>/", recording_views.recording, name="recording"),
    path("recordings/<uuid:uid>/cast/", recording_views.cast, name="cast"),
    path("recordings/<uuid:uid>/cut/", recording_views.cut, name="cut"),
    path("recordings/<uuid:uid>/delete/", recording_views.delete, name="delete"),
]
