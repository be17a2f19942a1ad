from django.apps import AppConfig


class BatchesConfig(AppConfig):
    name = "hekla.apps.batches"
    label = "batches"
