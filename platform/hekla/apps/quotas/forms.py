"""The form of a quota."""

from collections.abc import Iterable
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from hekla.apps.accounts.models import User
from hekla.apps.forms import QuantitiesField
from hekla.apps.quotas.models import Quota

_MOST = 10_000_000
BOUNDS = ("jobs", "sessions", "gpu_hours", "resources")


def key_of(quota: Quota) -> str:
    """The form's choice for the owner of this quota."""
    return f"@{quota.user.username}" if quota.user else quota.of


class BoundsForm(forms.Form):
    """The limits of a quota."""

    jobs = forms.IntegerField(
        label=_("Unfinished jobs"),
        required=False,
        min_value=0,
        max_value=_MOST,
        help_text=_("Leave empty for no limit."),
    )
    sessions = forms.IntegerField(
        label=_("Debugging sessions"),
        required=False,
        min_value=0,
        max_value=_MOST,
        help_text=_("Leave empty for no limit."),
    )
    gpu_hours = forms.IntegerField(
        label=_("GPU-hours per month"),
        required=False,
        min_value=0,
        max_value=_MOST,
        help_text=_("On cards of any kind together. Leave empty for no limit."),
    )
    resources = QuantitiesField(
        label=_("Resources in use"),
        help_text=_("For example: nvidia.com/gpu=8, cpu=64, memory=256Gi. Leave empty for no limit."),
    )


class QuotaForm(BoundsForm):
    """The owner of a quota, and its limits. `members`: those who may be chosen, if single members are allowed."""

    whose = forms.ChoiceField(label=_("Applies to"))
    field_order = ("whose", *BOUNDS)

    def __init__(self, *args: Any, allowed: Iterable[Quota.Of], members: Iterable[User], **more: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **more)
        self._members = {f"@{user.username}": user for user in members}
        general = [(of.value, of.label) for of in allowed if of is not Quota.Of.ONE]
        single = [(key, str(user)) for key, user in self._members.items()] if Quota.Of.ONE in allowed else []
        whose = self.fields["whose"]
        assert isinstance(whose, forms.ChoiceField)  # noqa: S101
        whose.choices = [*general, *single]

    def values(self) -> dict[str, Any]:
        """The arguments of the service."""
        user = self._members.get(self.cleaned_data["whose"])
        of = Quota.Of.ONE if user else Quota.Of(self.cleaned_data["whose"])
        bounds = {name: self.cleaned_data[name] for name in BOUNDS}
        return {"of": of, "user": user, "bounds": bounds}
