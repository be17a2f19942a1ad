from django.apps import AppConfig


class SecretsConfig(AppConfig):
    name = "hekla.apps.secrets"
    label = "secrets"
