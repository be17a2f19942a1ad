"""Quotas of single members as columns of a table of people: they are named as the form and the API name them."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from hekla.apps.accounts.models import User
from hekla.apps.event_log.services import Actor
from hekla.apps.invitations import extras
from hekla.apps.quotas import selectors, services
from hekla.apps.quotas.forms import BoundsForm
from hekla.apps.quotas.models import Quota
from hekla.apps.tenancy.models import Tenant
from hekla.domain.errors import Invalid, Problem


class QuotaColumns:
    """The bounds of one member. An empty cell leaves the bound as it is."""

    heads: Mapping[str, Any] = {
        "jobs": gettext_lazy("Unfinished jobs"),
        "sessions": gettext_lazy("Debugging sessions"),
        "gpu_hours": gettext_lazy("GPU-hours per month"),
        "resources": gettext_lazy("Resources in use"),
    }
    spellings: Mapping[str, set[str]] = {
        "jobs": {"jobs", "unfinishedjobs", "未结束的作业", "作业数"},
        "sessions": {"sessions", "debuggingsessions", "调试会话", "会话数"},
        "gpu_hours": {"gpuhours", "gpuhoursamonth", "每月gpu小时"},
        "resources": {"resources", "atonce", "资源", "同时"},
    }

    def read(self, cells: Mapping[str, str]) -> extras.Values:
        """The bounds that stand there. Raises Invalid."""
        form = BoundsForm({name: cells.get(name, "") for name in self.heads})
        if problems := [Problem(name, str(one)) for name, wrong in form.errors.items() for one in wrong]:
            raise Invalid(problems)
        bounds = {name: value for name, value in form.cleaned_data.items() if value not in (None, "", {})}
        return services.checked(bounds)

    def may(self, user: User, tenant: Tenant) -> bool:
        """Whether that person sets the quotas of members there."""
        return selectors.may_set(user, tenant, Quota.Of.ONE)

    def differing(self, values: extras.Values, tenant: Tenant, user: User) -> extras.Values:
        """The bounds that are others as yet, or none."""
        quota = Quota.objects.filter(tenant=tenant, of=Quota.Of.ONE, user=user).first() or Quota()
        return {name: value for name, value in values.items() if getattr(quota, name) != value}

    def give(self, values: extras.Values, tenant: Tenant, user: User, *, actor: Actor, now: datetime) -> None:
        """Set them; other bounds of the member stay."""
        services.bound(tenant=tenant, of=Quota.Of.ONE, user=user, bounds=values, actor=actor, now=now)

    def words(self, values: extras.Values) -> str:
        """The bounds, one after the other."""
        bounds = [f"{self.heads[name]} {_text(values[name])}" for name in self.heads if name in values]
        return _("Quota: %(bounds)s.") % {"bounds": _(", ").join(bounds)} if bounds else ""


def _text(value: Any) -> str:  # noqa: ANN401  (as JSON keeps it)
    return " ".join(f"{name}={amount}" for name, amount in value.items()) if isinstance(value, dict) else str(value)


extras.KNOWN.append(QuotaColumns())
