"""Forms about clusters and environments."""

from django import forms
from django.utils.translation import gettext_lazy as _

from hekla.apps.clusters.models import Cluster, Environment
from hekla.apps.forms import refuse_reserved


class ClusterForm(forms.ModelForm):
    """A new cluster."""

    class Meta:
        model = Cluster
        fields = ["name", "kind", "config"]
        widgets = {"config": forms.Textarea(attrs={"rows": 8, "class": "code-input", "spellcheck": "false"})}
        help_texts = {
            "config": _('JSON. Simulated: {"nodes": [{"name": "gpu", "count": 4, "allocatable": {"cpu": "64"}}]}')
        }

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
        help_texts = {"requirements": _("One package a line, as pip reads them. Empty: the console's own interpreter.")}

    def clean_name(self) -> str:
        """A name that addresses do not use otherwise."""
        return refuse_reserved(self.cleaned_data["name"])


class EnvironmentChangeForm(forms.ModelForm):
    """An environment that exists; its name stays."""

    class Meta(EnvironmentForm.Meta):
        fields = ["description", "requirements"]
