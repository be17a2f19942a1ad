"""Forms of queues."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from hekla.apps.forms import NAME_ERRORS, QuantitiesField, refuse_reserved
from hekla.apps.queues.models import JOB_ORDERS, FederatedQueue, Queue
from hekla.domain import queue_settings
from hekla.pages.frame.edit_form import ModelEditForm
from hekla.pages.frame.selects import LongSelect, ManyCheckboxes
from hekla.pages.queues.fields import CardQuotaField, GroupLimitsField, NamesField


class QueueForm(forms.ModelForm):
    """A new queue."""

    capability = QuantitiesField(label=_("Limit"))
    guarantee = QuantitiesField(
        label=_("Guaranteed"), help_text=_("Resources reserved for the queue. For example: cpu=4, memory=8Gi.")
    )
    deserved = QuantitiesField(
        label=_("Deserved"),
        help_text=_("The share that the queue gets back when it has pending jobs. Used by the capacity plugin."),
    )

    required_node_groups = NamesField(
        label=_("Required node groups"),
        help_text=_(
            "Its pods use only these, or preferred ones. Used by the nodegroup plugin. For example: a100, h100."
        ),
    )
    preferred_node_groups = NamesField(label=_("Preferred node groups"), help_text=_("Its pods use these first."))
    excluded_node_groups = NamesField(label=_("Excluded node groups"), help_text=_("Its pods never use these."))
    avoided_node_groups = NamesField(label=_("Avoided node groups"), help_text=_("Its pods use these last."))
    node_group_limits = GroupLimitsField(
        label=_("Limits in node groups"),
        help_text=_(
            "The most that its pods may use in a group, one line for each. For example: a100: nvidia.com/gpu=4"
        ),
    )
    card_quota = CardQuotaField(
        label=_("Card limits by model"),
        help_text=_(
            "The most cards of each model that its pods may hold. Models that are not named cannot be used. Used by "
            "the capacity-card plugin. For example: NVIDIA-A100=8, NVIDIA-H100=16. Leave empty for no limit."
        ),
    )
    allow_unknown_resources = forms.BooleanField(
        label=_("Allow unknown resources"),
        required=False,
        help_text=_("Accept resources that no node of the cluster has yet."),
    )

    class Meta:
        model = Queue
        fields = [
            "cluster", "name", "description", "weight", "priority", "capability", "guarantee", "deserved", "parent",
            "reclaimable", "job_order", *queue_settings.AFFINITY, "node_group_limits", "card_quota",
            "hierarchy", "hierarchy_weights", "tenants",
        ]  # fmt: skip
        widgets = {"tenants": ManyCheckboxes, "parent": LongSelect}
        error_messages = {"name": NAME_ERRORS}
        help_texts = {
            "weight": _("Its relative share when queues compete. Twice the weight means twice the share."),
            "priority": _("Queues with higher priority are served first."),
            "reclaimable": _("Other queues can reclaim what it borrows beyond its share."),
            "job_order": _("The order of its pending jobs."),
            "hierarchy": _(
                "Its path from the root, for the drf plugin with enableHierarchy. For example: root/science/dev."
            ),
            "hierarchy_weights": _("One weight for each name of the path. For example: 1/2/4."),
            "parent": _("The parent queue. Used by the capacity plugin."),
            "tenants": _("Tenants that can submit here. Select none to allow all tenants."),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **kwargs)
        self.fields["parent"].empty_label = _("none")  # type: ignore[attr-defined]
        self.fields["job_order"].choices = [("", _("as in the cluster's policy")), *JOB_ORDERS]  # type: ignore[attr-defined]
        if "cluster" in self.fields:
            self.fields["cluster"].empty_label = _("Select a cluster")  # type: ignore[attr-defined]

    def clean_name(self) -> str:
        """The name, unless the URLs reserve it."""
        return refuse_reserved(self.cleaned_data["name"])

    def clean_weight(self) -> int:
        """The weight, from 1 to 65535, Volcano's maximum."""
        weight: int = self.cleaned_data["weight"]
        if not 1 <= weight <= 65535:  # noqa: PLR2004
            raise forms.ValidationError(_("The weight must be between 1 and 65535."))
        return weight

    def values(self) -> dict[str, Any]:
        """The cleaned values, without the cluster, the name, the tenants and the confirmation."""
        own = {"cluster", "name", "tenants", "allow_unknown_resources"}
        return {k: v for k, v in self.cleaned_data.items() if k not in own}


class QueueChangeForm(ModelEditForm, QueueForm):
    """An existing queue. Its cluster and name cannot change."""

    class Meta(QueueForm.Meta):
        fields = [field for field in QueueForm.Meta.fields if field not in {"cluster", "name"}]


class MembersField(forms.ModelMultipleChoiceField):
    """Queues, each labelled with its cluster."""

    widget = ManyCheckboxes

    def label_from_instance(self, obj: Queue) -> str:
        """The queue's name and cluster."""
        return f"{obj.name} ({obj.cluster.name})"


class FederatedQueueForm(forms.ModelForm):
    """A new federated queue: a name for queues of several clusters."""

    members = MembersField(
        queryset=Queue.objects.select_related("cluster").order_by("cluster__name", "name"),
        label=_("Queues"),
        help_text=_("One queue per cluster. The queues keep their shares, limits and order."),
    )

    class Meta:
        model = FederatedQueue
        fields = ["name", "description", "members", "tenants"]
        widgets = {"tenants": ManyCheckboxes}
        error_messages = {"name": NAME_ERRORS}
        help_texts = {
            "tenants": _(
                "Tenants that can submit here. Select none to allow all tenants that can submit to one of the queues."
            )
        }

    def clean_name(self) -> str:
        """The name, unless the URLs reserve it."""
        return refuse_reserved(self.cleaned_data["name"])


class FederatedQueueChangeForm(ModelEditForm, FederatedQueueForm):
    """An existing federated queue. Its name cannot change."""

    class Meta(FederatedQueueForm.Meta):
        fields = ["description", "members", "tenants"]
