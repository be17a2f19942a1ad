from django.urls import path

from hekla.pages.lazy_views import LazyViews

views = LazyViews("hekla.pages.demonstrations.views")
prefix = "demonstrations/"
app_name = "demonstrations"
urlpatterns = [
    path("", views.demonstrations, name="list"),
    path("simulated-teams/remove/", views.remove_workload, name="remove_workload"),
    path("<slug:name>/", views.detail, name="detail"),
    path("<slug:name>/start/", views.start, name="start"),
]
