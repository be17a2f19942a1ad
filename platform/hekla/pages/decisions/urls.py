from django.urls import path

from hekla.pages.lazy_views import LazyViews

views = LazyViews("hekla.pages.decisions.views")
prefix = "decisions/"
app_name = "decisions"
urlpatterns = [
    path("", views.show_all, name="list"),
    path("<int:record_id>/", views.show, name="detail"),
    path("<int:record_id>/jobs/<int:job>/", views.show_job, name="job"),
    path("<int:record_id>/file/", views.download, name="file"),
]
