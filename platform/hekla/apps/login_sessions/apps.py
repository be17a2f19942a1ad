from django.apps import AppConfig


class LoginSessionsConfig(AppConfig):
    name = "hekla.apps.login_sessions"
    label = "login_sessions"
