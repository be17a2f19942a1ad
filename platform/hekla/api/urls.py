"""URLs of the API under `/api/`. There is one version so far."""

from django.urls import include, path, re_path

from hekla.api.views import UnknownAddressView

urlpatterns = [
    path("v1/", include("hekla.api.v1.urls")),
    re_path("", UnknownAddressView.as_view(), name="nothing"),
]
