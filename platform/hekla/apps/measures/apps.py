from django.apps import AppConfig


class MeasuresConfig(AppConfig):
    name = "hekla.apps.measures"
    label = "measures"
