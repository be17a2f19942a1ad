"""Queries about secrets, only for the code that starts pods."""

from uuid import UUID

from hekla.apps.secrets.encryption import decrypt
from hekla.apps.secrets.models import JobSecrets


def of_job(uid: UUID) -> dict[str, str]:
    """The job's secrets by name. Raises NotFound if they cannot be decrypted any more."""
    row = JobSecrets.objects.filter(job_uid=uid).first()
    return decrypt(row.values) if row else {}
