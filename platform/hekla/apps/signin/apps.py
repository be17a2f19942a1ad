from django.apps import AppConfig


class SigninConfig(AppConfig):
    name = "hekla.apps.signin"
    label = "signin"
