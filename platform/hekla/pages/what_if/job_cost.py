"""What a job costs: a part of the job's page that loads later."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from hekla.apps.jobs import selectors as jobs
from hekla.apps.measures import job_costs
from hekla.lib import clock
from hekla.pages.frame.people import person


@require_safe
def part(request: HttpRequest, uid: UUID) -> HttpResponse:
    """The card of the costs so far and in all; empty without prices."""
    job = jobs.get(uid, person(request))
    return render(request, "jobs/_job_cost.html", {"job": job, "cost": job_costs.cost_of(job, now=clock.now())})
