"""The words and pictures of what was found."""

from django.utils.translation import gettext_lazy as _

KINDS = {
    "job": (_("Jobs"), "jobs"),
    "flow": (_("Flows"), "flows"),
    "template": (_("Templates"), "flows"),
    "batch": (_("Batches"), "clone"),
    "schedule": (_("Schedules"), "clock"),
    "queue": (_("Queues"), "queues"),
    "node": (_("Nodes"), "nodes"),
    "tenant": (_("Tenants"), "tenants"),
    "person": (_("People"), "people"),
    "help": (_("Help"), "help"),
}
"""By kind: what several of them are called, and their icon."""
