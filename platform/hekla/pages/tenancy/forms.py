"""Forms of tenants and departments."""

import re
from typing import Any

from django import forms
from django.db.models import Q
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import TENANT_ROLE_LABELS
from hekla.apps.forms import NAME_ERRORS, refuse_reserved
from hekla.apps.quotas.forms import BOUNDS, BoundsForm
from hekla.apps.tenancy import selectors
from hekla.apps.tenancy.models import MAX_RETENTION_DAYS, Department, Tenant
from hekla.pages.frame.edit_form import ModelEditForm, ValuesEditForm

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
    """A new member."""

    user = forms.ModelChoiceField(
        label=_("User name"),
        queryset=User.objects.filter(is_active=True),
        to_field_name="username",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
        error_messages={"invalid_choice": _("Unknown person. A platform admin can add people.")},
    )
    role = forms.ChoiceField(label=_("Role"), choices=ROLES, initial="member")


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
    tenants = forms.ModelMultipleChoiceField(
        label=_("Tenants"),
        queryset=selectors.all_tenants(),
        required=False,
        widget=forms.CheckboxSelectMultiple,
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
        names = {name for name in re.split(r"[,\s]+", self.cleaned_data["heads"]) if name}
        found = list(User.objects.filter(username__in=names, is_active=True))
        unknown = sorted(names - {user.username for user in found})
        if unknown:
            raise forms.ValidationError(
                gettext("No active person has the name: %s") % gettext(", ").join(unknown)[:200]
            )
        return found


class DepartmentChangeForm(ModelEditForm, DepartmentForm):
    """An existing department. Its short name cannot change."""

    class Meta(DepartmentForm.Meta):
        fields = ["name", "description"]
