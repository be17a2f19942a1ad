"""Price lists. One is valid from its begin until that of the next one."""

import uuid

from django.db import models

from hekla.domain.prices import MAX_CURRENCY, MAX_NAME


class PriceList(models.Model):
    """Prices from the UTC hour `begin_at` on. It is never changed; only a list that has not begun can be deleted.

    `spec`: as `domain.prices.PriceSpec`, without queues. `factors`: as texts, by the primary key of a queue as text:
    queues can be deleted, and what they cost stays. `is_demonstration`: made by a demonstration, not by a person.
    """

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    name = models.CharField(max_length=MAX_NAME)
    currency = models.CharField(max_length=MAX_CURRENCY)
    begin_at = models.DateTimeField()
    spec = models.JSONField()
    factors = models.JSONField(default=dict)
    is_demonstration = models.BooleanField(default=False)
    created_by = models.CharField(max_length=150, blank=True)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["begin_at"], name="one_price_list_at_a_time")]

    def __str__(self) -> str:
        return f"{self.name} from {self.begin_at:%F %T}"
