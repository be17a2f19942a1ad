from django.apps import AppConfig


class NotificationsConfig(AppConfig):
    name = "hekla.apps.notifications"
    label = "notifications"
