"""Forms of tenants and departments."""

import re
from typing import Any

from django import forms
from django.db.models import Q, QuerySet
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import TENANT_ROLE_LABELS
from hekla.apps.forms import NAME_ERRORS, refuse_reserved
from hekla.apps.quotas.forms import BOUNDS, BoundsForm
from hekla.apps.tenancy import selectors
from hekla.apps.tenancy.models import MAX_RETENTION_DAYS, Department, Tenant
from hekla.pages.frame.edit_form import ModelEditForm, ValuesEditForm
from hekla.pages.frame.person_picker import PersonPicker, offer
from hekla.pages.frame.selects import ManyCheckboxes

ROLES = [(role.value, label) for role, label in TENANT_ROLE_LABELS.items()]


class TenantForm(forms.ModelForm):
    """A new tenant."""

    class Meta:
        model = Tenant
        fields = ["name", "slug", "description"]
        widgets = {"description": forms.Textarea(attrs={"rows": 3})}
        error_messages = {"slug": NAME_ERRORS}
        help_texts = {"slug": _("Lowercase letters, digits and hyphens. Used in URLs and commands.")}

    def clean_slug(self) -> str:
        """The short name, unless the URLs reserve it."""
        return refuse_reserved(self.cleaned_data["slug"])


class NewTenantForm(BoundsForm, TenantForm):
    """A new tenant with its quota."""

    field_order = (*TenantForm.Meta.fields, *BOUNDS)

    def values(self) -> dict[str, Any]:
        """The arguments of the service."""
        own = {name: self.cleaned_data[name] for name in self.Meta.fields}
        return own | {"bounds": {name: self.cleaned_data[name] for name in BOUNDS}}


class TenantChangeForm(ModelEditForm, forms.ModelForm):
    """An existing tenant. Its short name cannot change."""

    class Meta:
        model = Tenant
        fields = ["name", "description", "is_active"]
        widgets = {"description": forms.Textarea(attrs={"rows": 3})}


class RetentionForm(ValuesEditForm, forms.Form):
    """The retention of logs and history of deleted jobs. The service validates the combination."""

    log_days = forms.IntegerField(
        label=_("Log retention (days)"),
        min_value=0,
        max_value=MAX_RETENTION_DAYS,
        help_text=_("Counted from the deletion of a job. 0 deletes the logs with the job."),
    )
    history_days = forms.IntegerField(
        label=_("History retention (days)"),
        min_value=1,
        max_value=MAX_RETENTION_DAYS,
        help_text=_("Counted from the deletion of a job. Covers its settings, pods and events."),
    )


class MemberForm(forms.Form):
    """A new member. `offered`: the people that the field suggests."""

    user = forms.ModelChoiceField(
        label=_("User name"),
        queryset=User.objects.filter(is_active=True),
        to_field_name="username",
        widget=PersonPicker,
        help_text=_("Type a part of the name to choose from the people that you can see."),
        error_messages={"invalid_choice": _("Unknown person. A platform admin can add people.")},
    )
    role = forms.ChoiceField(label=_("Role"), choices=ROLES, initial="member")

    def __init__(self, *args: Any, offered: QuerySet[User], **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **kwargs)
        offer(self.fields["user"], offered)


class DepartmentForm(forms.ModelForm):
    """A new department."""

    heads = forms.CharField(
        label=_("Department heads"),
        required=False,
        help_text=_(
            "User names, separated by commas. Department heads have admin rights in each tenant of the department."
        ),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    new_head = forms.CharField(
        label=_("Add a head"),
        required=False,
        max_length=150,
        widget=PersonPicker,
        help_text=_("Type a part of the name to choose a person."),
    )
    tenants = forms.ModelMultipleChoiceField(
        label=_("Tenants"),
        queryset=selectors.all_tenants(),
        required=False,
        widget=ManyCheckboxes,
        help_text=_("Tenants of other departments are not listed. A tenant belongs to at most one department."),
    )

    class Meta:
        model = Department
        fields = ["name", "slug", "description"]
        widgets = {"description": forms.Textarea(attrs={"rows": 3})}
        error_messages = {"slug": NAME_ERRORS}
        help_texts = {"slug": _("Lowercase letters, digits and hyphens. Used in URLs and commands.")}

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **kwargs)
        offer(self.fields["new_head"], User.objects.filter(is_active=True))
        known = self.instance if self.instance.pk else None
        self.fields["tenants"].queryset = selectors.all_tenants().filter(Q(department=None) | Q(department=known))  # type: ignore[attr-defined]
        if known:
            self.initial["heads"] = ", ".join(user.username for user in selectors.heads(known))
            self.initial["tenants"] = list(selectors.tenants_in(known))

    def clean_slug(self) -> str:
        """The short name, unless the URLs reserve it."""
        return refuse_reserved(self.cleaned_data["slug"])

    def clean_heads(self) -> list[User]:
        """The active people of these user names."""
        return _active({name for name in re.split(r"[,\s]+", self.cleaned_data["heads"]) if name})

    def clean_new_head(self) -> list[User]:
        """The person to add, if any."""
        return _active({self.cleaned_data["new_head"].strip()} - {""})

    def clean(self) -> dict[str, Any]:
        """The chosen person is one of the heads."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        heads = [*cleaned.get("heads", ()), *cleaned.pop("new_head", ())]
        return {**cleaned, "heads": list(dict.fromkeys(heads))} if "heads" in cleaned else cleaned


def _active(names: set[str]) -> list[User]:
    """The active people of these user names. Raises ValidationError."""
    found = list(User.objects.filter(username__in=names, is_active=True))
    if unknown := sorted(names - {user.username for user in found}):
        raise forms.ValidationError(gettext("No active person has the name: %s") % gettext(", ").join(unknown)[:200])
    return found


class DepartmentChangeForm(ModelEditForm, DepartmentForm):
    """An existing department. Its short name cannot change."""

    class Meta(DepartmentForm.Meta):
        fields = ["name", "description"]
