"""The jobs on a node, as links: to the pod if the job has a single one there, else to the job."""

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from django.utils.safestring import SafeString
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from hekla.apps.jobs.models import MOST_JOBS_ON_NODE
from hekla.pages.frame import html
from hekla.pages.frame.html import text

if TYPE_CHECKING:
    from hekla.apps.jobs.selectors import JobOnNode


def node_jobs(found: Sequence["JobOnNode"]) -> SafeString:
    """Links to the first eight jobs on a node."""
    return SafeString(job_links(found, *words()))


def job_links(found: Sequence["JobOnNode"], comma: str, pods: str) -> str:
    """The same, for lists of many nodes, with `words`."""
    more = " …" if len(found) > MOST_JOBS_ON_NODE else ""
    return comma.join([_link(one, pods) for one in found[:MOST_JOBS_ON_NODE]]) + more


def words() -> tuple[str, str]:
    """What separates two jobs, and how the number of their pods is said, in the language in force."""
    return _words(get_language())


@cache
def _words(_language: str | None) -> tuple[str, str]:
    """Translated once for all lists."""
    return _(", "), _(" (%(n)s pods)")


def _link(one: "JobOnNode", pods: str) -> str:
    """`pods`: how their number is said, translated once for all links."""
    place = html.address("jobs:detail", one.uid)
    if one.pods == 1:
        return f'<a href="{place}#pod-{one.pod_id}">{text(f"{one.name} {one.pod_name}")}</a>'
    return f'<a href="{place}">{text(one.name)}</a>{text(pods % {"n": one.pods})}'
