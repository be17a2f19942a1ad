"""URLs of the websockets."""

from django.urls import path

from hekla.live.consumers import LogConsumer, PageConsumer

urlpatterns = [  # Channels passes ASGI applications to `path`, which is typed for views
    path("ws/live/", PageConsumer.as_asgi()),  # type: ignore[arg-type]
    path("ws/logs/<int:pod_id>/", LogConsumer.as_asgi()),  # type: ignore[arg-type]
]
