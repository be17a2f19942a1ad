from django.apps import AppConfig


class JobsConfig(AppConfig):
    name = "hekla.apps.jobs"
    label = "jobs"
