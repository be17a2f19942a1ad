from django.apps import AppConfig


class IdentitiesConfig(AppConfig):
    name = "hekla.apps.identities"
    label = "identities"
