"""What the list of jobs can be narrowed to, kept in the address."""

from typing import TYPE_CHECKING

import django_filters
from django.db.models import Q, QuerySet

from hekla.apps.jobs.models import Job
from hekla.domain.phases import JobPhase

if TYPE_CHECKING:
    from hekla.apps.accounts.models import User

PHASES = [(phase.value, phase.value) for phase in JobPhase]
ORDER = (("submitted_at", "submitted"), ("name", "name"), ("phase", "phase"), ("priority", "priority"))


class JobFilter(django_filters.FilterSet):  # type: ignore[misc]
    """Text, phases, queue, tenant, kind, whose, and the order."""

    q = django_filters.CharFilter(method="matching")
    phase = django_filters.MultipleChoiceFilter(choices=PHASES)
    queue = django_filters.CharFilter(field_name="queue__name")
    tenant = django_filters.CharFilter(field_name="tenant__slug")
    kind = django_filters.CharFilter()
    whose = django_filters.CharFilter(method="of_person")
    sort = django_filters.OrderingFilter(fields=ORDER)

    class Meta:
        model = Job
        fields: list[str] = []

    def matching(self, jobs: QuerySet[Job], _name: str, text: str) -> QuerySet[Job]:
        """Name or owner holds the text."""
        text = text[:100]
        return jobs.filter(Q(name__icontains=text) | Q(owner__username__icontains=text))

    def of_person(self, jobs: QuerySet[Job], _name: str, whose: str) -> QuerySet[Job]:
        """`mine`: one's own."""
        user: User = self.request.user
        return jobs.filter(owner=user) if whose == "mine" else jobs
