from django.apps import AppConfig


class ActingConfig(AppConfig):
    name = "hekla.apps.impersonation"
    label = "impersonation"
