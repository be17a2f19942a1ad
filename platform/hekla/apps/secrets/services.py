"""Stores and deletes secrets. There are no events for this: those of the job's submission and deletion suffice."""

from collections.abc import Mapping
from uuid import UUID

from hekla.apps.event_log.services import unit_of_work
from hekla.apps.secrets.encryption import encrypt
from hekla.apps.secrets.models import JobSecrets


def keep(uid: UUID, values: Mapping[str, str]) -> None:
    """Store a new job's secrets."""
    if values:
        with unit_of_work():
            JobSecrets.objects.create(job_uid=uid, values=encrypt(values))


def forget(uid: UUID) -> None:
    """Delete a job's secrets."""
    with unit_of_work():
        JobSecrets.objects.filter(job_uid=uid).delete()
