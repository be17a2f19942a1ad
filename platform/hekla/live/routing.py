"""The addresses of sockets."""

from django.urls import path

from hekla.live.consumers import LogConsumer, PageConsumer

urlpatterns = [
    path("ws/live/", PageConsumer.as_asgi()),
    path("ws/logs/<int:pod_id>/", LogConsumer.as_asgi()),
]
