"""Forms about clusters and environments."""

import json
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from hekla.apps.clusters.models import Cluster, Environment
from hekla.apps.forms import NAME_ERRORS, refuse_reserved


class DocumentField(forms.JSONField):
    """A JSON document, laid out as people read it."""

    def prepare_value(self, value: object) -> str:
        """What was typed stays as it was typed."""
        return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


class ClusterForm(forms.ModelForm):
    """A new cluster."""

    class Meta:
        model = Cluster
        fields = ["name", "kind", "config"]
        field_classes = {"config": DocumentField}
        widgets = {"config": forms.Textarea(attrs={"rows": 8, "class": "code-input", "spellcheck": "false"})}
        error_messages = {"name": NAME_ERRORS}
        help_texts = {
            "config": _(
                'JSON. Kubernetes: {"kubeconfig": "a file in the folder kubeconfigs"}. '
                'Simulated: {"nodes": [{"name": "gpu", "count": 4, "allocatable": {"cpu": "64"}}]}'
            )
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **kwargs)
        self.fields["kind"].choices = [("", _("Choose")), *Cluster.Kind.choices]  # type: ignore[attr-defined]

    def clean_name(self) -> str:
        """A name that addresses do not use otherwise."""
        return refuse_reserved(self.cleaned_data["name"])


class ClusterChangeForm(forms.ModelForm):
    """A cluster that exists; its name and kind stay."""

    class Meta(ClusterForm.Meta):
        fields = ["config", "is_paused"]


class EnvironmentForm(forms.ModelForm):
    """A named set of packages."""

    class Meta:
        model = Environment
        fields = ["name", "description", "requirements"]
        widgets = {"requirements": forms.Textarea(attrs={"rows": 8, "class": "code-input", "spellcheck": "false"})}
        error_messages = {"name": NAME_ERRORS}
        help_texts = {"requirements": _("One package a line, as pip reads them. Empty: the console's own interpreter.")}

    def clean_name(self) -> str:
        """A name that addresses do not use otherwise."""
        return refuse_reserved(self.cleaned_data["name"])


class EnvironmentChangeForm(forms.ModelForm):
    """An environment that exists; its name stays."""

    class Meta(EnvironmentForm.Meta):
        fields = ["description", "requirements"]
