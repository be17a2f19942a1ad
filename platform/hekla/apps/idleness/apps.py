from django.apps import AppConfig


class IdlenessConfig(AppConfig):
    name = "hekla.apps.idleness"
    label = "idleness"
