from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "hekla.apps.accounts"
    label = "accounts"

    def ready(self) -> None:
        """Let sessions read their people faster."""
        from hekla.apps.accounts import people_by_id  # noqa: PLC0415

        people_by_id.register()
