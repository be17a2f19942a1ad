from django.apps import AppConfig


class EventLogConfig(AppConfig):
    name = "hekla.apps.event_log"
    label = "event_log"
