from django.apps import AppConfig


class DemonstrationsConfig(AppConfig):
    name = "hekla.apps.demonstrations"
    label = "demonstrations"
