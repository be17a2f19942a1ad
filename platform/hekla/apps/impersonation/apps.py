from django.apps import AppConfig


class ImpersonationConfig(AppConfig):
    name = "hekla.apps.impersonation"
    label = "impersonation"
