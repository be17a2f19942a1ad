from django.apps import AppConfig


class AnnouncementsConfig(AppConfig):
    name = "hekla.apps.announcements"
    label = "announcements"
