"""Forms of the sign-in."""

from datetime import timedelta
from typing import Any

from django import forms
from django.contrib.auth.forms import AuthenticationForm, UsernameField
from django.utils.translation import gettext_lazy as _

from hekla.apps.signin import slowdown
from hekla.lib import clock

_CODE = {"autocomplete": "one-time-code", "autocapitalize": "none", "spellcheck": "false", "autofocus": True}


class SignInForm(AuthenticationForm):
    """A user name and a password."""

    username = UsernameField(label=_("User name"), widget=forms.TextInput(attrs={"autofocus": True}))
    error_messages = AuthenticationForm.error_messages | {
        "invalid_login": _("Wrong user name or password. Both are case-sensitive."),
        "slowed_down": _("Too many wrong passwords."),
    }
    wait = timedelta()
    """The time until this name can be tried again, if there were too many wrong passwords."""

    def clean(self) -> dict[str, Any]:
        """Check the password, unless the name has to wait."""
        name, password = self.cleaned_data.get("username"), self.cleaned_data.get("password")
        if not name or not password:
            return self.cleaned_data
        address = self.request.META.get("REMOTE_ADDR", "") if self.request else ""
        self.wait = slowdown.attempt(name, address, now=clock.now())
        if self.wait:
            raise forms.ValidationError(self.error_messages["slowed_down"], code="slowed_down")
        cleaned = super().clean()
        slowdown.succeeded(name)
        return cleaned


class CodeForm(forms.Form):
    """A code of the authenticator app, or a recovery code."""

    code = forms.CharField(
        label=_("Code"),
        max_length=40,
        widget=forms.TextInput(attrs=_CODE),
        help_text=_("The six digits in your app, or a recovery code."),
    )


class KeyForm(forms.Form):
    """The response of a security key or passkey, as JSON that a script fills in."""

    credential = forms.CharField(
        label=_("Security key or passkey"),
        max_length=16_000,
        widget=forms.HiddenInput,
        error_messages={"required": _("Security keys need JavaScript. Use a code instead.")},
    )


class NewKeyForm(KeyForm):
    """A new security key, with a name."""

    name = forms.CharField(
        label=_("Name"), max_length=60, help_text=_("A name to recognize the key, for example “blue key” or “laptop”.")
    )


class ConfirmationForm(forms.Form):
    """The first code of a new authenticator app."""

    code = forms.CharField(
        label=_("Code"),
        max_length=12,
        widget=forms.TextInput(attrs=_CODE | {"inputmode": "numeric"}),
        help_text=_("The six digits in your app."),
    )


class PasswordForm(forms.Form):
    """The person's password once more."""

    password = forms.CharField(
        label=_("Password"),
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password", "autofocus": True}),
    )
