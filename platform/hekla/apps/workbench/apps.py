from django.apps import AppConfig


class WorkbenchConfig(AppConfig):
    name = "hekla.apps.workbench"
    label = "workbench"

    def ready(self) -> None:
        """Wake the task that ends sessions after an event of a job, and check the settings of a deployment."""
        from hekla.apps.workbench import checks, wake  # noqa: PLC0415, F401  (one connects a signal)
