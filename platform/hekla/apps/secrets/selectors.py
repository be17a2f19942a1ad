"""Questions about secrets. Only who starts pods asks them."""

from uuid import UUID

from hekla.apps.secrets.models import JobSecrets


def of_job(uid: UUID) -> dict[str, str]:
    """The job's secrets by their names."""
    kept = JobSecrets.objects.filter(job_uid=uid).first()
    return dict(kept.values) if kept else {}
