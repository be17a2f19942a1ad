from django.apps import AppConfig


class LiveConfig(AppConfig):
    name = "hekla.live"
    label = "live"
