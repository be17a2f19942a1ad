"""Forms of clusters and environments."""

import json
from collections.abc import Iterable
from typing import Any

from django import forms
from django.db import models
from django.utils.translation import gettext_lazy as _

from hekla.apps.clusters.models import Cluster, Environment
from hekla.apps.clusters.services import MAX_METRICS_TOKEN
from hekla.apps.forms import NAME_ERRORS, refuse_reserved
from hekla.pages.frame.edit_form import ModelEditForm

MAX_KUBECONFIG_BYTES = 64 * 1024


class DocumentField(forms.JSONField):
    """A JSON document, indented."""

    def prepare_value(self, value: object) -> str:
        """The text as typed, or the indented document."""
        return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


class UnshownTextarea(forms.Textarea):
    """A text area that never sends its value back to the browser."""

    def format_value(self, value: object) -> None:
        """None, for every value."""


class MetricsTokenForm(forms.Form):
    """The token for the Prometheus of a cluster. The field's name tells the page's script not to keep it in a draft."""

    secret_token = forms.CharField(
        label=_("Token"),
        required=False,
        max_length=MAX_METRICS_TOKEN,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text=_("Sent as a bearer token, stored encrypted, and never shown. Empty: no token."),
    )


class AccessMethod(models.TextChoices):
    """How a Kubernetes cluster is reached, as the form offers it."""

    KUBECONFIG = "kubeconfig", _("Kubeconfig entered here")
    TOKEN = "token", _("Address and token entered here")
    ACCOUNT = "account", _("Service account of this console (in-cluster)")
    FILE = "file", _("Kubeconfig file on the server, named in the configuration")


class ClusterAccessForm(forms.ModelForm):
    """How a cluster of the kind kubernetes is reached. The form never sends secrets back in plain text: the hidden
    field `secret_carried` holds the credentials encrypted. The field names tell the page's script not to save them in a
    draft.
    """

    found: object = None
    """The health of the cluster, if the form is shown again after a connection check."""
    carried: object = None
    """The credentials in the hidden field `secret_carried`, if any. Pages show only what is not secret."""

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
        """The fields of each access method, for the page."""
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
        """The configuration, which must be a JSON object."""
        found = self.cleaned_data["config"] or {}
        if not isinstance(found, dict):
            raise forms.ValidationError(_("The configuration must be a JSON object: {…}."))
        return found

    def carry(self, encrypted: str) -> None:
        """Put the encrypted credentials into the hidden field, instead of sending them back in plain text."""
        self.data = {**{name: self.data[name] for name in self.data}, "secret_carried": encrypted}

    def drop_problems(self) -> None:
        """Show the form again as it was entered, without a check."""
        self._errors = forms.utils.ErrorDict()
        self.cleaned_data = {}

    def row(self) -> dict[str, Any]:
        """The cleaned values that are fields of the Cluster model."""
        return {name: value for name, value in self.cleaned_data.items() if name in (self._meta.fields or ())}

    @property
    def chosen_access(self) -> str:
        """The selected method; if none is selected, the one that the configuration implies."""
        by_config = AccessMethod.FILE if self.cleaned_data["config"].get("kubeconfig") else AccessMethod.ACCOUNT
        return str(self.cleaned_data["access"] or by_config)


class ClusterForm(ClusterAccessForm):
    """A new cluster. `kinds`: the kinds to choose from, with their labels."""

    kind = forms.ChoiceField(label=_("Kind"))

    class Meta:
        model = Cluster
        fields = ["name", "kind", "config"]
        field_classes = {"config": DocumentField}
        widgets = {"config": forms.Textarea(attrs={"rows": 8, "class": "code-input", "spellcheck": "false"})}
        error_messages = {"name": NAME_ERRORS}
        help_texts = {
            "config": _(
                "All settings as one JSON document, also those without a field. Change either this or the fields."
            ),
            "is_paused": _("Hekla makes no scheduling decisions for a paused cluster."),
        }

    def __init__(self, *args: Any, kinds: Iterable[tuple[str, str]], **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **kwargs)
        self.fields["kind"].choices = [("", _("Select a kind")), *kinds]  # type: ignore[attr-defined]
        self.fields["access"].choices = AccessMethod.choices  # type: ignore[attr-defined]

    def clean_name(self) -> str:
        """The name, unless the URLs reserve it."""
        return refuse_reserved(self.cleaned_data["name"])


class ClusterChangeForm(ModelEditForm, ClusterAccessForm):
    """An existing cluster. Its name and kind cannot change."""

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
            "requirements": _(
                "One package per line, as in pip's requirements files. If empty, tasks use the console's Python."
            )
        }

    def clean_name(self) -> str:
        """The name, unless the URLs reserve it."""
        return refuse_reserved(self.cleaned_data["name"])


class EnvironmentChangeForm(ModelEditForm, forms.ModelForm):
    """An existing environment. Its name cannot change."""

    class Meta(EnvironmentForm.Meta):
        fields = ["description", "requirements"]
