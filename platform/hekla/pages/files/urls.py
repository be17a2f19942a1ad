from django.urls import path

from hekla.pages.files import views

prefix = "files/"
app_name = "files"
urlpatterns = [
    path("pods/<int:pod_id>/preview/", views.preview, name="preview"),
    path("pods/<int:pod_id>/archive/", views.archive, name="archive"),
    path("pods/<int:pod_id>/image/", views.image, name="image"),
]
