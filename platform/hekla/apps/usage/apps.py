from django.apps import AppConfig


class UsageConfig(AppConfig):
    name = "hekla.apps.usage"
    label = "usage"
