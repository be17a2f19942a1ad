from django.apps import AppConfig


class PresetsConfig(AppConfig):
    name = "hekla.apps.presets"
    label = "presets"
