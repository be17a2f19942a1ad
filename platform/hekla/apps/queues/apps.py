from django.apps import AppConfig


class QueuesConfig(AppConfig):
    name = "hekla.apps.queues"
    label = "queues"
