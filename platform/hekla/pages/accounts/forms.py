"""Forms about people."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import PLATFORM_ROLE_LABELS
from hekla.apps.accounts.scopes import SCOPE_LABELS, USUAL, Scope
from hekla.pages.frame import time_zone
from hekla.pages.frame.edit_form import ModelEditForm
from hekla.pages.frame.selects import LongSelect

_KEEP_PASSWORD = _("At least 10 characters. Leave empty to keep the current password.")
_NO_PASSWORD = _("At least 10 characters. Without a password, the person signs in with a link that you send.")
_CURRENT_PASSWORD = _("Current password")


def _current_password(help_text: Any, label: Any = _CURRENT_PASSWORD) -> forms.CharField:  # noqa: ANN401  (translations)
    widget = forms.PasswordInput(attrs={"autocomplete": "current-password"})
    return forms.CharField(label=label, required=False, strip=False, widget=widget, help_text=help_text)


class PersonForm(forms.ModelForm):
    """A person, edited by a platform admin."""

    password = forms.CharField(
        label=_("Password"),
        required=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=_KEEP_PASSWORD,
    )
    revokes_tokens = forms.BooleanField(
        label=_("Revoke all access tokens"),
        required=False,
        help_text=_("A new password signs the person out everywhere. Tokens stay valid unless you revoke them."),
    )
    current_password = _current_password(
        _("Only needed to set a password or a platform role."), label=_("Your own password")
    )

    class Meta:
        model = User
        fields = ["username", "display_name", "platform_role", "is_active"]
        labels = {"username": _("User name"), "display_name": _("Full name"), "is_active": _("Sign-in enabled")}

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **kwargs)
        self.fields["username"].help_text = _("Letters, digits and @ . + - _")
        self.fields["is_active"].help_text = ""
        if self.instance.pk is None:
            del self.fields["revokes_tokens"]
            self.fields["password"].help_text = _NO_PASSWORD
        choices = [("", _("none")), *((role.value, name) for role, name in PLATFORM_ROLE_LABELS.items())]
        self.fields["platform_role"].choices = choices  # type: ignore[attr-defined]

    def values(self) -> dict[str, Any]:
        """The cleaned values of the person's fields."""
        return {name: value for name, value in self.cleaned_data.items() if name in (self._meta.fields or ())}


class PersonChangeForm(ModelEditForm, PersonForm):
    """An existing person."""


class ProfileForm(ModelEditForm, forms.ModelForm):
    """The fields of their own account that people can change. A new password needs the current one, if there is one."""

    password = forms.CharField(
        label=_("New password"),
        required=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=_KEEP_PASSWORD,
    )

    current_password = _current_password(_("Only needed for a new password."))
    revokes_tokens = forms.BooleanField(
        label=_("Revoke all access tokens"),
        required=False,
        help_text=_("A new password signs out your other sessions. Tokens stay valid unless you revoke them."),
    )

    time_zone = forms.ChoiceField(
        label=_("Time zone"),
        required=False,
        choices=lambda: [("", _("That of the browser")), *((name, name) for name in time_zone.names())],
        widget=LongSelect,
        help_text=_("Pages show times in this zone."),
    )

    class Meta:
        model = User
        fields = ["display_name", "time_zone"]
        labels = {"display_name": _("Full name")}


class TokenForm(forms.Form):
    """A new API token."""

    name = forms.CharField(label=_("Purpose"), max_length=80)
    days = forms.IntegerField(label=_("Valid for"), min_value=1, max_value=366, initial=90)
    scopes = forms.TypedMultipleChoiceField(
        label=_("Scope"),
        choices=[(scope.value, words) for scope, words in SCOPE_LABELS.items()],
        coerce=Scope,
        initial=[scope.value for scope in USUAL],
        widget=forms.CheckboxSelectMultiple,
        help_text=_("A token never has more permissions than you."),
    )
    current_password = _current_password(_("Only needed for a token with all of your permissions."))
