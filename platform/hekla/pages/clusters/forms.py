"""Forms about clusters and environments."""

import json
from collections.abc import Iterable
from typing import Any

from django import forms
from django.db import models
from django.utils.translation import gettext_lazy as _

from hekla.apps.clusters.models import Cluster, Environment
from hekla.apps.forms import NAME_ERRORS, refuse_reserved

MAX_KUBECONFIG_BYTES = 64 * 1024


class DocumentField(forms.JSONField):
    """A JSON document, laid out as people read it."""

    def prepare_value(self, value: object) -> str:
        """What was typed stays as it was typed."""
        return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


class UnshownTextarea(forms.Textarea):
    """What was typed here is never sent back."""

    def format_value(self, value: object) -> None:
        """Nothing."""


class AccessMethod(models.TextChoices):
    """How a Kubernetes cluster is reached, as a form asks it."""

    KUBECONFIG = "kubeconfig", _("Kubeconfig entered here")
    TOKEN = "token", _("Address and token entered here")
    ACCOUNT = "account", _("Service account of this console (in-cluster)")
    FILE = "file", _("Kubeconfig file on the server, named in the configuration")


class ClusterAccessForm(forms.ModelForm):
    """How a cluster of the kind kubernetes is reached. Nothing secret that was typed is sent back: `carried` is what
    was read of it, sealed. Their names tell the page's script to keep no draft of them.
    """

    found: object = None
    """What the cluster answered, where the form is handed back with it."""
    carried: object = None
    """What may be shown of the key that is carried on."""

    access = forms.ChoiceField(label=_("Connection"), required=False)
    secret_kubeconfig = forms.CharField(
        label=_("Kubeconfig"),
        required=False,
        widget=UnshownTextarea(attrs={"rows": 8, "class": "code-input", "spellcheck": "false", "autocomplete": "off"}),
        help_text=_("Hekla uses its current context, with an embedded token or certificate. At most 64 KiB."),
    )
    secret_file = forms.FileField(label=_("Or upload a file"), required=False)
    server = forms.CharField(
        label=_("Server address"), required=False, help_text=_("For example: https://10.0.0.1:6443")
    )
    authority = forms.CharField(
        label=_("CA certificate"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 6, "class": "code-input", "spellcheck": "false"}),
        help_text=_("PEM. Empty: a CA that this machine trusts."),
    )
    token = forms.CharField(
        label=_("Token"), required=False, widget=forms.PasswordInput(attrs={"autocomplete": "off"}), max_length=16_384
    )
    secret_carried = forms.CharField(required=False, widget=forms.HiddenInput)

    def access_fields(self) -> dict[str, list[forms.BoundField]]:
        """What each way asks for, for the page."""
        return {
            AccessMethod.KUBECONFIG: [self["secret_kubeconfig"], self["secret_file"]],
            AccessMethod.TOKEN: [self["server"], self["authority"], self["token"]],
        }

    def clean_secret_file(self) -> str:
        """The text of the file."""
        file = self.cleaned_data["secret_file"]
        if file is None:
            return ""
        if file.size > MAX_KUBECONFIG_BYTES:
            raise forms.ValidationError(_("The kubeconfig is larger than 64 KiB."))
        try:
            return str(file.read().decode("utf-8-sig"))
        except UnicodeDecodeError:
            raise forms.ValidationError(_("Not a text file.")) from None

    def clean_config(self) -> dict[str, Any]:
        """Names and values."""
        found = self.cleaned_data["config"] or {}
        if not isinstance(found, dict):
            raise forms.ValidationError(_("The configuration must be a JSON object: {…}."))
        return found

    def carry(self, encrypted: str) -> None:
        """Hand this back in place of a key that was given."""
        self.data = {**{name: self.data[name] for name in self.data}, "secret_carried": encrypted}

    def row(self) -> dict[str, Any]:
        """What is the cluster's own of what was typed."""
        return {name: value for name, value in self.cleaned_data.items() if name in (self._meta.fields or ())}

    @property
    def chosen_access(self) -> str:
        """As chosen; where nothing was, as the configuration says."""
        by_config = AccessMethod.FILE if self.cleaned_data["config"].get("kubeconfig") else AccessMethod.ACCOUNT
        return str(self.cleaned_data["access"] or by_config)


class ClusterForm(ClusterAccessForm):
    """A new cluster. `kinds`: those to choose from, with their labels."""

    kind = forms.ChoiceField(label=_("Kind"))

    class Meta:
        model = Cluster
        fields = ["name", "kind", "config"]
        field_classes = {"config": DocumentField}
        widgets = {"config": forms.Textarea(attrs={"rows": 8, "class": "code-input", "spellcheck": "false"})}
        error_messages = {"name": NAME_ERRORS}
        help_texts = {
            "config": _(
                'JSON. Kubernetes: {"namespace": "hekla", "image": "python:3.11-slim"}. For one namespace per '
                'tenant add "namespaces": "tenant". Simulated: {"nodes": [{"name": "gpu", "count": 4, '
                '"allocatable": {"cpu": "64"}}]}'
            )
        }

    def __init__(self, *args: Any, kinds: Iterable[tuple[str, str]], **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **kwargs)
        self.fields["kind"].choices = [("", _("Select a kind")), *kinds]  # type: ignore[attr-defined]
        self.fields["access"].choices = AccessMethod.choices  # type: ignore[attr-defined]

    def clean_name(self) -> str:
        """A name that addresses do not use otherwise."""
        return refuse_reserved(self.cleaned_data["name"])


class ClusterChangeForm(ClusterAccessForm):
    """A cluster that exists; its name and kind stay."""

    class Meta(ClusterForm.Meta):
        fields = ["config", "is_paused"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **kwargs)
        self.fields["access"].choices = [("", _("No change")), *AccessMethod.choices]  # type: ignore[attr-defined]


class EnvironmentForm(forms.ModelForm):
    """A named set of packages."""

    class Meta:
        model = Environment
        fields = ["name", "description", "requirements"]
        widgets = {"requirements": forms.Textarea(attrs={"rows": 8, "class": "code-input", "spellcheck": "false"})}
        error_messages = {"name": NAME_ERRORS}
        help_texts = {
            "requirements": _("One package per line in pip's format. Empty: the console's default interpreter.")
        }

    def clean_name(self) -> str:
        """A name that addresses do not use otherwise."""
        return refuse_reserved(self.cleaned_data["name"])


class EnvironmentChangeForm(forms.ModelForm):
    """An environment that exists; its name stays."""

    class Meta(EnvironmentForm.Meta):
        fields = ["description", "requirements"]
