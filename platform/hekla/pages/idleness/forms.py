"""The forms of an idle rule, and of the wish to keep a session or a job."""

from django import forms
from django.utils.translation import gettext_lazy as _

from hekla.apps.idleness.models import IdlePolicy
from hekla.apps.idleness.services import MAX_REASON, MOST_HOURS
from hekla.pages.frame.edit_form import ValuesEditForm

FIELDS = (
    *("ends_sessions", "idle_minutes", "grace_minutes", "cpu_percent", "gpu_percent", "network_kib"),
    "gpu_job_minutes",
)


class IdleRuleForm(ValuesEditForm, forms.ModelForm):
    """When idle sessions end, and jobs that hold GPUs they do not use."""

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
            "gpu_job_minutes": _("Idle time of jobs with GPUs (minutes)"),
        }
        help_texts = {
            "ends_sessions": _("If off, this rule ends no session."),
            "idle_minutes": _("Without any activity for so long, the owner of a session is warned."),
            "grace_minutes": _("From the warning to the end. Any activity keeps the session or job."),
            "cpu_percent": _("A pod that uses more keeps its sessions. Leave empty: CPU does not count."),
            "gpu_percent": _("A pod whose GPUs are busier keeps its sessions. Leave empty: GPUs do not count."),
            "network_kib": _("A session that sends more keeps itself. Leave empty: the network does not count."),
            "gpu_job_minutes": _(
                "A job whose GPUs stay below the GPU limit for so long is warned, then aborted. Leave empty: no job is."
            ),
        }


class KeepForm(forms.Form):
    """For how long a session or a job is kept, and why."""

    hours = forms.IntegerField(label=_("Keep for (hours)"), min_value=1, max_value=MOST_HOURS, initial=4)
    reason = forms.CharField(
        label=_("Because"),
        max_length=MAX_REASON,
        help_text=_("For example: an experiment that waits for data. People who see the job can read it."),
    )
