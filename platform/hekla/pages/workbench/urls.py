from django.urls import path

from hekla.pages.lazy_views import LazyViews

activity = LazyViews("hekla.pages.workbench.activity")
people = LazyViews("hekla.pages.workbench.people")
views = LazyViews("hekla.pages.workbench.views")
prefix = ""
app_name = "workbench"
urlpatterns = [
    path("jobs/<uuid:uid>/pods/<int:pod_id>/tools/", views.tools, name="tools"),
    path("sessions/<uuid:uid>/", views.session, name="session"),
    path("sessions/<uuid:uid>/enter/", views.enter, name="enter"),
    path("sessions/<uuid:uid>/activity/", activity.activity, name="activity"),
    path("sessions/<uuid:uid>/people/", people.people, name="people"),
    path("sessions/<uuid:uid>/keep/", activity.keep, name="keep"),
    path("sessions/<uuid:uid>/end/", views.end, name="end"),
]
