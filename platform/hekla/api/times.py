"""Instants as REST shows them, for views that build their documents without a serializer: of lists of many rows."""

from datetime import datetime

from django.utils.timezone import get_current_timezone
from rest_framework import serializers


class RestTimes(dict[datetime, str]):
    """The texts of instants in the current time zone, each made once."""

    def __init__(self) -> None:
        super().__init__()
        self._field = serializers.DateTimeField(default_timezone=get_current_timezone())

    def __missing__(self, at: datetime) -> str:
        text = self[at] = str(self._field.to_representation(at))
        return text
