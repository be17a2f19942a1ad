from django.apps import AppConfig


class LoginSessionsConfig(AppConfig):
    name = "hekla.apps.login_sessions"
    label = "login_sessions"

    def ready(self) -> None:
        """Connect the signal that limits the lifetime of sessions."""
        from hekla.apps.login_sessions import lifetime  # noqa: PLC0415, F401  (connects a signal)
