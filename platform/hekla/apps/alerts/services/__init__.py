"""Changes to alert rules, their evaluation, and what they do."""

from hekla.apps.alerts.services.actions import act_due
from hekla.apps.alerts.services.evaluating import evaluate
from hekla.apps.alerts.services.rules import change, create, delete, renew_secret, require_right, silence, tidy, veto

__all__ = [
    "act_due",
    "change",
    "create",
    "delete",
    "evaluate",
    "renew_secret",
    "require_right",
    "silence",
    "tidy",
    "veto",
]
