"""Forms about tenants."""

from django import forms
from django.utils.translation import gettext_lazy as _

from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import TENANT_ROLE_LABELS
from hekla.apps.forms import refuse_reserved
from hekla.apps.tenancy.models import MAX_DAYS_KEPT, Tenant

ROLES = [(role.value, label) for role, label in TENANT_ROLE_LABELS.items()]


class TenantForm(forms.ModelForm):
    """A new tenant."""

    class Meta:
        model = Tenant
        fields = ["name", "slug", "description"]
        widgets = {"description": forms.Textarea(attrs={"rows": 3})}
        help_texts = {"slug": _("Small letters, digits and hyphens; it stands in addresses and commands.")}

    def clean_slug(self) -> str:
        """A name that addresses do not use otherwise."""
        return refuse_reserved(self.cleaned_data["slug"])


class TenantChangeForm(forms.ModelForm):
    """A tenant that exists; its short name stays."""

    class Meta:
        model = Tenant
        fields = ["name", "description", "is_active"]
        widgets = {"description": forms.Textarea(attrs={"rows": 3})}


class RetentionForm(forms.Form):
    """For how long what deleted jobs leave is kept; the service judges it."""

    log_days = forms.IntegerField(
        label=_("Days to keep logs"),
        min_value=0,
        max_value=MAX_DAYS_KEPT,
        help_text=_("After a job is deleted. 0: they go with the job."),
    )
    history_days = forms.IntegerField(
        label=_("Days to keep history"),
        min_value=1,
        max_value=MAX_DAYS_KEPT,
        help_text=_("After a job is deleted: its settings, its pods, and what happened to it."),
    )


class MemberForm(forms.Form):
    """Somebody who joins."""

    user = forms.ModelChoiceField(
        label=_("User name"),
        queryset=User.objects.filter(is_active=True),
        to_field_name="username",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
        error_messages={"invalid_choice": _("There is no person of that name. A platform admin can add one.")},
    )
    role = forms.ChoiceField(label=_("Role"), choices=ROLES, initial="member")
