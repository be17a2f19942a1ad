from django.urls import path

from hekla.pages.lazy_views import LazyViews

edit_views = LazyViews("hekla.pages.files.edit_views")
views = LazyViews("hekla.pages.files.views")
prefix = "files/"
app_name = "files"
urlpatterns = [
    path("pods/<int:pod_id>/edit/", edit_views.edit, name="edit"),
    path("pods/<int:pod_id>/preview/", views.preview, name="preview"),
    path("pods/<int:pod_id>/archive/", views.archive, name="archive"),
    path("pods/<int:pod_id>/image/", views.image, name="image"),
]
