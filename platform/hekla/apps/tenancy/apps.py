from django.apps import AppConfig


class TenancyConfig(AppConfig):
    name = "hekla.apps.tenancy"
    label = "tenancy"
