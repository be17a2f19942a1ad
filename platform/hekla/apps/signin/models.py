"""Second factors: what proves a person besides the password or the link that they came with."""

from django.conf import settings
from django.db import models


class SecondFactor(models.Model):
    """An app that shows a code every half minute. `secret` is sealed; until `confirmed_at` it is not asked for.

    `last_step` is the half minute whose code was used last, so that no code is taken twice.
    """

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="second_factor")
    secret = models.BinaryField()
    created_at = models.DateTimeField()
    confirmed_at = models.DateTimeField(null=True)
    last_step = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"second factor of {self.user_id}"


class SecurityKey(models.Model):
    """A security key or passkey: it signs what the console asks it, with a secret that never leaves it.

    `sign_count` is how often it had signed when it was used last, where it counts that at all: a copy is found out by
    counting less. `transports` say how browsers reach it.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="security_keys")
    name = models.CharField(max_length=60)
    credential_id = models.BinaryField(unique=True)
    public_key = models.BinaryField()
    sign_count = models.BigIntegerField(default=0)
    transports = models.JSONField(default=list)
    created_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.name


class RecoveryCode(models.Model):
    """A code that stands in once for whatever second factor the person has. Of the code only a digest is kept."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="recovery_codes")
    digest = models.CharField(max_length=64)
    used_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "digest"], name="one_recovery_code")]

    def __str__(self) -> str:
        return f"recovery code of {self.user_id}"


class Tries(models.Model):
    """How often a person's second factor was `wrong` since `wrong_since`; its lock lets them change one at a time."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="factor_tries")
    wrong = models.PositiveSmallIntegerField(default=0)
    wrong_since = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"tries of {self.user_id}"
