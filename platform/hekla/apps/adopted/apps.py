from django.apps import AppConfig


class AdoptedConfig(AppConfig):
    name = "hekla.apps.adopted"
    label = "adopted"
