from django.urls import path

from hekla.pages.lazy_views import LazyViews

views = LazyViews("hekla.pages.usage.views")
prefix = "use/"
app_name = "usage"
urlpatterns = [
    path("jobs/<uuid:uid>/", views.job, name="job"),
    path("pods/<int:pod_id>/", views.pod, name="pod"),
]
