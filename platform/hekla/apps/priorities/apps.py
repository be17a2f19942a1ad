from django.apps import AppConfig


class PrioritiesConfig(AppConfig):
    name = "hekla.apps.priorities"
    label = "priorities"
