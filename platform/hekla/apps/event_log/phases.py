"""The labels of phases and states."""

from django.utils.translation import gettext_lazy


def phase(value: str) -> str:
    """The label of a phase of a job or pod, or of the state of a queue or node."""
    return str(_PHASES.get(value, value))


_PHASES = {
    "pending": gettext_lazy("Pending"),
    "inqueue": gettext_lazy("Inqueue"),
    "bound": gettext_lazy("Bound"),
    "preparing": gettext_lazy("Preparing"),
    "running": gettext_lazy("Running"),
    "restarting": gettext_lazy("Restarting"),
    "completing": gettext_lazy("Completing"),
    "completed": gettext_lazy("Completed"),
    "succeeded": gettext_lazy("Succeeded"),
    "aborting": gettext_lazy("Aborting"),
    "aborted": gettext_lazy("Aborted"),
    "terminating": gettext_lazy("Terminating"),
    "terminated": gettext_lazy("Terminated"),
    "failed": gettext_lazy("Failed"),
    "lost": gettext_lazy("Lost"),
    "unknown": gettext_lazy("Unknown"),
    "open": gettext_lazy("Open"),
    "closing": gettext_lazy("Closing"),
    "draining": gettext_lazy("Draining"),
    "closed": gettext_lazy("Closed"),
    "ready": gettext_lazy("Ready"),
    "cordoned": gettext_lazy("Cordoned"),
}
