"""The addresses of sockets."""

from django.urls import path

from hekla.live.consumers import LogConsumer, PageConsumer

urlpatterns = [  # an ASGI application stands where `path` expects a view: so Channels wants it
    path("ws/live/", PageConsumer.as_asgi()),  # type: ignore[arg-type]
    path("ws/logs/<int:pod_id>/", LogConsumer.as_asgi()),  # type: ignore[arg-type]
]
