"""Queries about priority classes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.compiled import CompiledQuery, Parameter
from hekla.apps.priorities.models import PriorityClass
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.models import Tenant
from hekla.domain.errors import NotFound, Problem
from hekla.domain.jobspec import JobSpec


@dataclass(frozen=True, slots=True)
class RequestedPriority:
    """The priority of a job when it is submitted."""

    value: int
    never_preempts: bool = False


@dataclass(frozen=True, slots=True)
class Offering:
    """The classes that a tenant may use, highest first. `are_any`: classes exist, even if only for other tenants."""

    tenant: Tenant
    classes: tuple[PriorityClass, ...]
    are_any: bool

    def problems(self, spec: JobSpec) -> Iterator[Problem]:
        """Problems of a job whose priority this tenant may not use."""
        if not spec.priority_class:
            yield from self.problems_of(spec.priority)
            return
        found = self._named(spec.priority_class)
        if found is None:
            sentence = _("%(tenant)s cannot use a priority class “%(name)s”. Available: %(names)s.")
            names = _(", ").join(one.name for one in self.classes) or _("none")
            facts = {"tenant": self.tenant, "name": spec.priority_class, "names": names}
            yield Problem("priority_class", sentence % facts)
        elif spec.priority not in (0, found.value):
            sentence = _("The class %(name)s has the priority %(value)d. Set only the class or only the number.")
            yield Problem("priority", sentence % {"name": found.name, "value": found.value})

    def problems_of(self, number: int) -> Iterator[Problem]:
        """A problem if the number exceeds the tenant's classes; without any class all numbers are allowed."""
        if self.are_any and number > self.most:
            sentence = _(
                "The maximum priority in %(tenant)s is %(most)d. Platform admins can make a higher class available."
            )
            yield Problem("priority", sentence % {"tenant": self.tenant, "most": self.most})

    @property
    def most(self) -> int:
        """The greatest number that a job may use."""
        return max([0, *(one.value for one in self.classes)])

    def requested(self, spec: JobSpec) -> RequestedPriority:
        """The job's priority: from its class, its number, or else the default class."""
        found = self._named(spec.priority_class) if spec.priority_class else None
        if found is None and not spec.priority:
            found = next((one for one in self.classes if one.is_default), None)
        return RequestedPriority(found.value, found.never_preempts) if found else RequestedPriority(spec.priority)

    def _named(self, name: str) -> PriorityClass | None:
        return next((one for one in self.classes if one.name == name), None)


def offer_to(tenant: Tenant) -> Offering:
    """The classes that the tenant's new jobs may use."""
    offered = _OFFERED.rows(tenant=tenant.pk)
    return Offering(tenant, tuple(one for one in offered if one.is_usable), bool(offered))  # reads them once


def _offered() -> QuerySet[Any]:
    through = PriorityClass.tenants.through.objects.filter(priorityclass=OuterRef("pk"))
    is_usable = ~Exists(through) | Exists(through.filter(tenant=Parameter("tenant", Tenant._meta.pk)))
    return PriorityClass.objects.filter(is_offered=True).annotate(is_usable=is_usable).order_by("-value", "name")


_OFFERED = CompiledQuery(_offered)


def visible_to(user: User) -> QuerySet[PriorityClass]:
    """The classes that one of the person's tenants may use; all classes for people who see everything."""
    found = PriorityClass.objects.order_by("-value", "name").prefetch_related("tenants")
    if accounts.may(user, Permission.SEE_EVERYTHING):
        return found
    usable = Q(tenants=None) | Q(tenants__in=tenancy.visible_to(user))
    return found.filter(usable, is_offered=True).distinct()


def get(name: str, user: User) -> PriorityClass:
    """The class of that name. Raises NotFound."""
    found = visible_to(user).filter(name=name).first()
    if found is None:
        raise NotFound(_("Unknown priority class."))
    return found
