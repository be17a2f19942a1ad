"""What jobs choose themselves: idle times shorter than those of the rules of their tenant, or where no rule is on."""

from collections.abc import Iterator, Sequence
from datetime import timedelta

from django.utils.translation import gettext as _

from hekla.apps.idleness import job_selectors, selectors
from hekla.apps.tenancy.models import Tenant
from hekla.domain.card_resources import is_card
from hekla.domain.errors import Problem
from hekla.domain.idleness import MINUTE, IdleRule
from hekla.domain.jobspec import JobSpec


def problems(spec: JobSpec, tenant: Tenant) -> Sequence[Problem]:
    """Times of this job that are longer than the rules of its tenant allow."""
    if spec.idle_after_seconds is None:
        return []
    rules = [selectors.rules_of([tenant.pk])[tenant.pk]]
    if any(is_card(name) for task in spec.tasks for name in task.resources):
        rules.append(job_selectors.rules_of([tenant.pk])[tenant.pk])
    return list(_too_long(spec, [rule for rule in rules if rule is not None]))


def _too_long(spec: JobSpec, rules: Sequence[IdleRule]) -> Iterator[Problem]:
    chosen = {"idle_after_seconds": "idle", "idle_grace_seconds": "grace"}
    for field, name in chosen.items():
        seconds = getattr(spec, field)
        longest = min((getattr(rule, name) for rule in rules), default=None)
        if seconds is not None and longest is not None and timedelta(seconds=seconds) > longest:
            sentence = _("At most %(n)d minutes, because the idle rule of the tenant is stricter.")
            yield Problem(field, sentence % {"n": longest // MINUTE})
