"""The reclaim risk of a job: the resources that other queues may reclaim. A part of the job's page that loads later."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_safe

from hekla.apps.jobs import selectors as jobs
from hekla.apps.sentences import together
from hekla.lib import clock
from hekla.pages.frame.people import person
from hekla.simulation import reclaim_risk
from hekla.simulation.reclaim_risk import Claimant, ReclaimRisk


@require_safe
def part(request: HttpRequest, uid: UUID) -> HttpResponse:
    """The card of the reclaim risk. Queues that the person may not see have no name in it."""
    user = person(request)
    job = jobs.get(uid, user)
    found = reclaim_risk.visible_risk(user, job, now=clock.now())
    context = {"job": job, "exposure": found, "sentence": sentence(found)}
    context["claimants"] = [_claims(one) for one in found.claimants]
    return render(request, "jobs/_exposure.html", context)


def sentence(found: ReclaimRisk) -> str:
    """The current borrowing and the possible evictions, in words."""
    if found.is_safe:
        return _SAFE[found.is_safe]()
    facts = {"n": found.now, "of": found.pods, "most": found.most}
    sentences = []
    if found.now:
        borrowed = ngettext(
            "%(n)d of its %(of)d pods uses resources that its queue has borrowed.",
            "%(n)d of its %(of)d pods use resources that its queue has borrowed.",
            found.now,
        )
        sentences.append(borrowed % facts)
    if found.most:
        sentences.append(
            _("When another queue reclaims its share, up to %(most)d of its %(of)d pods are evicted.") % facts
        )
    else:
        sentences.append(_("Other queues cannot reclaim any of its resources."))
    return together(sentences)


def _claims(one: Claimant) -> str:
    facts = {"queue": one.queue, "n": one.pods, "share": f"{100 * one.share:.0f}"}
    if not one.queue:
        text = ngettext(
            "%(n)d pod of another queue is pending. That queue uses %(share)s%% of its deserved share.",
            "%(n)d pods of another queue are pending. That queue uses %(share)s%% of its deserved share.",
            one.pods,
        )
    else:
        text = ngettext(
            "%(n)d pod of queue %(queue)s is pending. That queue uses %(share)s%% of its deserved share.",
            "%(n)d pods of queue %(queue)s are pending. That queue uses %(share)s%% of its deserved share.",
            one.pods,
        )
    return text % facts


_SAFE = {
    "no_place": lambda: _("The job uses no resources that could be reclaimed."),
    "no_reclaim": lambda: _("The cluster's policy does not reclaim resources from queues."),
    "no_shares": lambda: _("The cluster's policy has no queue shares, so nothing is borrowed."),
    "queue_keeps": lambda: _("Its queue is not reclaimable."),
    "job_keeps": lambda: _("Its pods are not preemptible."),
}
