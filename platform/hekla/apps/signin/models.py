"""Second factors: proofs of identity in addition to the password or the sign-in link."""

from django.conf import settings
from django.db import models


class SecondFactor(models.Model):
    """An app that shows a code every 30 seconds. `secret` is encrypted; before `confirmed_at` it is not required.

    `last_step` is the time step of the last used code, so that no code is accepted twice.
    """

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="second_factor")
    secret = models.BinaryField()
    created_at = models.DateTimeField()
    confirmed_at = models.DateTimeField(null=True)
    last_step = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"second factor of {self.user_id}"


class SecurityKey(models.Model):
    """A security key or passkey: it signs challenges of the console with a private key that never leaves it.

    `sign_count` is its signature count at the last use, if it has one: the lower count of a copy reveals it.
    `transports`: how browsers reach it.
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
    """A code that replaces any second factor of the person once. Only its hash is stored."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="recovery_codes")
    digest = models.CharField(max_length=64)
    used_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "digest"], name="one_recovery_code")]

    def __str__(self) -> str:
        return f"recovery code of {self.user_id}"


class SecondFactorAttempts(models.Model):
    """The number of `wrong` attempts since `wrong_since`. A lock on this row serializes changes of factors."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="factor_tries")
    wrong = models.PositiveSmallIntegerField(default=0)
    wrong_since = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"tries of {self.user_id}"
