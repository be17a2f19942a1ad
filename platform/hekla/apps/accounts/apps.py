from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "hekla.apps.accounts"
    label = "accounts"
