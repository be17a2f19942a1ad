from django.apps import AppConfig


class PricesConfig(AppConfig):
    name = "hekla.apps.prices"
    label = "prices"
