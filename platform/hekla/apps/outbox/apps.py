from django.apps import AppConfig


class OutboxConfig(AppConfig):
    name = "hekla.apps.outbox"
    label = "outbox"
