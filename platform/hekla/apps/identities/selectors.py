"""Queries for identities."""

from django.db.models import QuerySet

from hekla.apps.accounts.models import User
from hekla.apps.identities.models import Identity


def of(user: User) -> QuerySet[Identity]:
    """The person's linked accounts, by provider."""
    return Identity.objects.filter(user=user).order_by("provider", "pk")
