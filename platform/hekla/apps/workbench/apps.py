from django.apps import AppConfig


class WorkbenchConfig(AppConfig):
    name = "hekla.apps.workbench"
    label = "workbench"
