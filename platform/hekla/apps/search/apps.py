from django.apps import AppConfig


class SearchConfig(AppConfig):
    name = "hekla.apps.search"
    label = "search"
