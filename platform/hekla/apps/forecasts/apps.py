from django.apps import AppConfig


class ForecastsConfig(AppConfig):
    name = "hekla.apps.forecasts"
    label = "forecasts"
