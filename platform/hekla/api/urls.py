"""`/api/`: one version so far."""

from django.urls import include, path, re_path

from hekla.api.views import Nothing

app_name = "api"
urlpatterns = [
    path("v1/", include("hekla.api.v1.urls")),
    re_path("", Nothing.as_view(), name="nothing"),
]
