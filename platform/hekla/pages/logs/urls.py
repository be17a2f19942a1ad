from django.urls import path

from hekla.pages.lazy_views import LazyViews

views = LazyViews("hekla.pages.logs.views")
prefix = "live/"
app_name = "live"
urlpatterns = [
    path("jobs/<uuid:uid>/results/", views.results, name="results"),
    path("jobs/<uuid:uid>/logs/", views.download_logs, name="download_logs"),
    path("pods/<int:pod_id>/log/search/", views.search_log, name="search_log"),
    path("pods/<int:pod_id>/evidence/", views.evidence, name="evidence"),
    path("pods/<int:pod_id>/file/", views.download_file, name="download_file"),
    path("pods/<int:pod_id>/log/", views.download_log, name="download_log"),
]
