"""What all measures over a period share in REST: the query, and the head of the answer."""

from typing import Any

from rest_framework import serializers

from hekla.apps.measures.selectors import Period


class PeriodQuerySerializer(serializers.Serializer[Any]):
    period = serializers.ChoiceField([one.value for one in Period], default=Period.DAY.value)
    until = serializers.DateTimeField(required=False, help_text="end of the period; default: now")
    cluster = serializers.CharField(
        required=False, max_length=200, help_text="name; default: all that are not simulated"
    )
    queue = serializers.CharField(required=False, max_length=200, help_text="name")


class PeriodReportSerializer(serializers.Serializer[Any]):
    period = serializers.ChoiceField([one.value for one in Period])
    begin = serializers.DateTimeField()
    end = serializers.DateTimeField()
    step_seconds = serializers.IntegerField()
    is_simulated = serializers.BooleanField()
