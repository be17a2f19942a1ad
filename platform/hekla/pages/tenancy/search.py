"""Searches tenants by name."""

from collections.abc import Iterator

from django.db.models import Q
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from hekla.apps.accounts.models import User
from hekla.apps.search.registry import LIMIT_OF_EACH, Hit, Source
from hekla.apps.tenancy import selectors


def _tenants(user: User, text: str, _language: str) -> Iterator[Hit]:
    matches = Q(name__icontains=text) | Q(slug__icontains=text)
    for tenant in selectors.visible_to(user).filter(matches)[:LIMIT_OF_EACH]:
        yield Hit("tenant", tenant.name, tenant.slug, reverse("tenancy:detail", args=[tenant.slug]))


SOURCES = [Source("tenant", _("Tenants"), "tenants", 80, _tenants)]
