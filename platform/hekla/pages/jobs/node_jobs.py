"""The jobs on a node, as links: to the pod if the job has a single one there, else to the job."""

from collections.abc import Sequence

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from hekla.apps.jobs.selectors import JobOnNode
from hekla.pages.frame import html

_MOST = 8


def node_jobs(found: Sequence[JobOnNode]) -> SafeString:
    """Links to the first eight jobs on a node."""
    more = " …" if len(found) > _MOST else ""
    return mark_safe(_(", ").join(map(_link, found[:_MOST])) + more)


def _link(one: JobOnNode) -> SafeString:
    place = html.address("jobs:detail", one.job.uid)
    if one.count == 1:
        return format_html('<a href="{}#pod-{}">{} {}</a>', place, one.pod_id, one.job.name, one.pod_name)
    return format_html('<a href="{}">{}</a>{}', place, one.job.name, _(" (%(n)s pods)") % {"n": one.count})
