"""Sentences about a previewed drain, for pages, REST and the command line."""

from datetime import datetime

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from hekla.apps.job_history import labels, receipts
from hekla.apps.sentences import together
from hekla.simulation import descriptions
from hekla.simulation.draining import DrainedJob, DrainFate


def fate(found: DrainedJob) -> str:
    """What becomes of the job."""
    if found.fate is DrainFate.STAYS:
        return _("Its pods are external. They stay: only their owner stops them.")
    if found.fate is DrainFate.ENDS:
        return _("The job ends: %(phase)s.") % {"phase": labels.phase(found.ends_as)}
    if found.fate is DrainFate.RESTARTS:
        text = _("The whole job restarts.")
    else:
        text = ngettext("%(n)d pod starts again.", "%(n)d pods start again.", found.stopped) % {"n": found.stopped}
    if found.restarts_left is None:
        return text
    left = ngettext("%(n)d restart is left then.", "%(n)d restarts are left then.", found.restarts_left)
    return together([text, left % {"n": found.restarts_left}])


def lost(found: DrainedJob) -> str:
    """What the job loses; empty if nothing."""
    if found.fate is DrainFate.STAYS or not found.lost_seconds:
        return ""
    return receipts.lost_work(found.lost_seconds, found.lost_gpu_seconds)


def when(found: DrainedJob, now: datetime) -> str:
    """Where and when its pods start again; empty if they do not."""
    if not found.goes_on:
        return ""
    if found.nodes:
        places = together(descriptions.where(found.nodes))
        return together([_("Starts again as soon as its pods have ended:"), places])
    if not found.fits:
        return _("Fits on no other node. It waits until this node is uncordoned.")
    if found.starts:
        return together(descriptions.span(found.starts, now))
    return _("Waits for room. Its start is not within the horizon of the simulation.")
