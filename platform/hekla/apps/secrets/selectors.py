"""Questions about secrets. Only who starts pods asks them."""

from uuid import UUID

from hekla.apps.secrets.encryption import decrypt
from hekla.apps.secrets.models import JobSecrets


def of_job(uid: UUID) -> dict[str, str]:
    """The job's secrets by their names. Raises NotFound where they cannot be read any more."""
    row = JobSecrets.objects.filter(job_uid=uid).first()
    return decrypt(row.values) if row else {}
