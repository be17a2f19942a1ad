from django.apps import AppConfig


class SharingConfig(AppConfig):
    name = "hekla.apps.sharing"
    label = "sharing"
