"""Changes to templates and flows. Each function is one unit of work."""

from hekla.apps.flows.services.advancing import advance_all
from hekla.apps.flows.services.starting import AppliedManifest, apply, check, start
from hekla.apps.flows.services.stopping import delete, stop
from hekla.apps.flows.services.templates import change_template, create_template, delete_template, save_template

__all__ = [
    "AppliedManifest",
    "advance_all",
    "apply",
    "change_template",
    "check",
    "create_template",
    "delete",
    "delete_template",
    "save_template",
    "start",
    "stop",
]
