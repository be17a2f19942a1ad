"""Forms about clusters and environments."""

from django import forms
from django.utils.translation import gettext_lazy as _

from hekla.apps.clusters.models import Cluster, Environment


class ClusterForm(forms.ModelForm):
    """A new cluster."""

    class Meta:
        model = Cluster
        fields = ["name", "kind", "config"]
        widgets = {"config": forms.Textarea(attrs={"rows": 8, "class": "code-input", "spellcheck": "false"})}
        help_texts = {
            "config": _('JSON. Simulated: {"nodes": [{"name": "gpu", "count": 4, "allocatable": {"cpu": "64"}}]}')
        }


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


class EnvironmentChangeForm(forms.ModelForm):
    """An environment that exists; its name stays."""

    class Meta(EnvironmentForm.Meta):
        fields = ["description", "requirements"]
