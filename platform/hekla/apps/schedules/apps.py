from django.apps import AppConfig


class SchedulesConfig(AppConfig):
    name = "hekla.apps.schedules"
    label = "schedules"
