"""The examples that come with Hekla: real jobs in folders, each with a button that submits it."""

from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job
from hekla.apps.tenancy.models import Tenant
from hekla.domain import formats
from hekla.domain.errors import NotFound
from hekla.domain.jobspec import JobSpec
from hekla.lib.checkout import CHECKOUT

FOLDER = CHECKOUT / "platform" / "examples"


@dataclass(frozen=True, slots=True)
class Example:
    """A folder with a job manifest and its files."""

    name: str

    def spec(self) -> JobSpec:
        """The job, with the other Python files of its folder. Raises NotFound."""
        folder = FOLDER / self.name
        if not (folder / "job.yaml").is_file():
            raise NotFound(_("Unknown example."))
        spec = formats.load((folder / "job.yaml").read_text(encoding="utf-8")).spec
        files = {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.py"))}
        return spec.model_copy(update={"files": {**spec.files, **files}})


def names() -> list[str]:
    """The names of all examples."""
    return sorted(path.parent.name for path in FOLDER.glob("*/job.yaml"))


def run(name: str, *, tenant: Tenant, user: User, now: datetime) -> Job:
    """Submit an example under a free name. Raises NotFound, Refused."""
    if name not in names():
        raise NotFound(_("Unknown example."))
    spec = Example(name).spec()
    spec = spec.model_copy(update={"name": jobs.free_name(tenant, spec.name)})
    return services.submit(spec=spec, tenant=tenant, user=user, now=now)
