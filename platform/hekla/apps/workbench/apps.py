from django.apps import AppConfig


class WorkbenchConfig(AppConfig):
    name = "hekla.apps.workbench"
    label = "workbench"

    def ready(self) -> None:
        """Wake the task that ends sessions after an event of a job."""
        from hekla.apps.workbench import wake  # noqa: PLC0415, F401  (connects a signal)
