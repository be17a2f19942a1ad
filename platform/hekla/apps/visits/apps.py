from django.apps import AppConfig


class VisitsConfig(AppConfig):
    name = "hekla.apps.visits"
    label = "visits"
