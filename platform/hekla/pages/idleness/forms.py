"""The form of an idle rule."""

from django import forms
from django.utils.translation import gettext_lazy as _

from hekla.apps.idleness.models import IdlePolicy
from hekla.pages.frame.edit_form import ValuesEditForm

FIELDS = ("ends_sessions", "idle_minutes", "grace_minutes", "cpu_percent", "gpu_percent", "network_kib")


class IdleRuleForm(ValuesEditForm, forms.ModelForm):  # type: ignore[type-arg]
    """When idle sessions end."""

    class Meta:
        model = IdlePolicy
        fields = FIELDS
        labels = {
            "ends_sessions": _("End idle sessions"),
            "idle_minutes": _("Idle time (minutes)"),
            "grace_minutes": _("Grace time (minutes)"),
            "cpu_percent": _("CPU limit (% of one core)"),
            "gpu_percent": _("GPU limit (% of one GPU)"),
            "network_kib": _("Network limit (KiB per minute)"),
        }
        help_texts = {
            "ends_sessions": _("If off, no session ends because it is idle."),
            "idle_minutes": _("Without any activity for so long, the owner of a session is warned."),
            "grace_minutes": _("From the warning to the end of the session. Any activity keeps it."),
            "cpu_percent": _("A pod that uses more keeps its sessions. Leave empty: CPU does not count."),
            "gpu_percent": _("A pod whose GPUs are busier keeps its sessions. Leave empty: GPUs do not count."),
            "network_kib": _("A session that sends more keeps itself. Leave empty: the network does not count."),
        }
