"""All URLs: the pages, as each feature registers them, and the REST APIs."""

from hekla.pages import registry
from hekla.pages.lazy_views import LazyUrls

handler400 = "hekla.pages.frame.errors.bad_request"
handler404 = "hekla.pages.frame.errors.not_found"

urlpatterns = [
    *registry.urlpatterns(),
    LazyUrls("api/", "hekla.api.urls", "api"),
    LazyUrls("rest-server/api/", "hekla.api.openpai.urls", "openpai"),
]
