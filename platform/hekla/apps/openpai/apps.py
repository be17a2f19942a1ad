from django.apps import AppConfig


class OpenPaiConfig(AppConfig):
    name = "hekla.apps.openpai"
    label = "openpai"
