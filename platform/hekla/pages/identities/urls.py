from django.urls import path

from hekla.pages.lazy_views import LazyViews

views = LazyViews("hekla.pages.identities.views")
prefix = "accounts/"
app_name = "accounts"
urlpatterns = [
    path("from/<slug:name>/", views.start, name="start_oidc"),
    path("from/<slug:name>/back/", views.back, name="oidc_back"),
    path("me/identities/", views.identities, name="identities"),
    path("me/identities/<slug:name>/connect/", views.connect, name="connect_identity"),
    path("me/identities/<int:identity_id>/disconnect/", views.disconnect, name="disconnect_identity"),
]
