"""All URLs: the pages, as each feature registers them, and the REST APIs."""

from django.urls import include, path

from hekla.pages import registry

handler400 = "hekla.pages.frame.errors.bad_request"
handler404 = "hekla.pages.frame.errors.not_found"

urlpatterns = [
    *registry.urlpatterns(),
    path("api/", include("hekla.api.urls")),
    path("rest-server/api/", include("hekla.api.openpai.urls")),
]
