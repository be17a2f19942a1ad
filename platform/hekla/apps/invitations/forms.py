"""Forms for invitations."""

from typing import Any

from django import forms
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.db.models import QuerySet
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import PLATFORM_ROLE_LABELS, TENANT_ROLE_LABELS, TenantRole
from hekla.apps.invitations import table
from hekla.apps.tenancy.models import Tenant
from hekla.domain.errors import Invalid


class InvitationForm(forms.Form):
    """The person to invite, and their roles. Only with `platform_roles` the form offers platform roles."""

    email = forms.EmailField(
        label=_("Email address"),
        required=False,
        help_text=_("Leave empty to get a link that you hand over yourself."),
        widget=forms.EmailInput(attrs={"autocomplete": "off"}),
    )
    role = forms.ChoiceField(
        label=_("Role"), choices=[(r.value, n) for r, n in TENANT_ROLE_LABELS.items()], initial=TenantRole.MEMBER
    )
    platform_role = forms.ChoiceField(
        label=_("Platform role"),
        required=False,
        choices=[("", _("none")), *((r.value, n) for r, n in PLATFORM_ROLE_LABELS.items())],
    )

    def __init__(self, *args: Any, platform_roles: bool, **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **kwargs)
        if not platform_roles:
            del self.fields["platform_role"]


class SignUpForm(forms.ModelForm):
    """The new account of an invited person."""

    password = forms.CharField(
        label=_("Password"),
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=_("At least 10 characters."),
    )

    class Meta:
        model = User
        fields = ["username", "display_name"]
        labels = {"username": _("User name"), "display_name": _("Your name")}
        help_texts = {"username": _("Letters, digits and @ . + - _")}
        widgets = {"username": forms.TextInput(attrs={"autocomplete": "username", "autocapitalize": "none"})}


class RowForm(forms.Form):
    """One row of an import table."""

    username = forms.CharField(required=False, max_length=150, validators=[UnicodeUsernameValidator()])
    email = forms.EmailField(required=False, max_length=250)
    name = forms.CharField(required=False, max_length=120)
    role = forms.CharField(required=False)
    tenant = forms.CharField(required=False)
    department = forms.CharField(required=False)

    def clean_role(self) -> str:
        """The role, from its name or its label; member if empty."""
        typed = self.cleaned_data["role"].lower()
        for role, words in TENANT_ROLE_LABELS.items():
            if typed in {role.value, str(words).lower()}:
                return role.value
        if typed:
            roles = ", ".join(TENANT_ROLE_LABELS)
            raise forms.ValidationError(gettext("Unknown role. Choose one of: %(roles)s.") % {"roles": roles})
        return TenantRole.MEMBER.value

    def clean(self) -> dict[str, Any]:
        """Require a user name or an email address."""
        cleaned = super().clean() or self.cleaned_data
        if not cleaned.get("username") and not cleaned.get("email") and not self.errors:
            self.add_error("username", gettext("Enter a user name, an email address, or both."))
        return cleaned


class ImportForm(forms.Form):
    """An import table, typed or uploaded, and the tenant for rows without one."""

    tenant = forms.ModelChoiceField(
        label=_("Tenant"),
        queryset=Tenant.objects.none(),
        to_field_name="slug",
        required=False,
        empty_label=_("from each row"),
        help_text=_("For rows without a tenant."),
    )
    text = forms.CharField(
        label=_("People"),
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 10, "class": "code-input", "spellcheck": "false"}),
        help_text=_(
            "The first row has the column names, in any order. Required: username or email. Optional: name, "
            "role (admin, member or viewer), tenant, department (of the tenant), and the quotas jobs, "
            "sessions, gpu_hours and resources."
        ),
    )
    upload = forms.FileField(
        label=_("Or upload a file"), required=False, help_text=_("CSV with at most 200 rows. It replaces the text.")
    )

    def __init__(self, *args: Any, tenants: QuerySet[Tenant], **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **kwargs)
        self.fields["tenant"].queryset = tenants  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        """Parse the uploaded or typed text; an upload replaces the text in the form, for corrections."""
        cleaned = super().clean() or self.cleaned_data
        try:
            if upload := cleaned.get("upload"):
                cleaned["text"] = table.decoded(upload.read(table.MOST_BYTES + 1))
                self.data = {**dict(self.data.items()), "text": cleaned["text"]}
            if cleaned.get("text"):
                cleaned["table"] = table.read(cleaned["text"])
        except Invalid as error:
            self.add_error("text", error.problems[0].message)
        if not cleaned.get("text") and not self.errors:
            self.add_error("text", gettext("Enter a table, or choose a file."))
        return cleaned
