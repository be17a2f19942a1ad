"""Everything that is written to the event log: one frozen model a kind, the kind being the model's name.

The log is read by pages, by history and audit, and by the controller itself, and it is kept for long; so a payload
holds facts and no documents, unknown fields are refused, and every text is bounded. Who did it, when, in which tenant
and to which subject stands in the log's own columns, not here; neither does anything secret.

A file for each subject; a new kind needs to stand in one of them, and nowhere else.
"""

from hekla.domain.events.base import *  # noqa: F403
from hekla.domain.events.batches import *  # noqa: F403
from hekla.domain.events.clusters import *  # noqa: F403
from hekla.domain.events.demonstrations import *  # noqa: F403
from hekla.domain.events.flows import *  # noqa: F403
from hekla.domain.events.invitations import *  # noqa: F403
from hekla.domain.events.jobs import *  # noqa: F403
from hekla.domain.events.people import *  # noqa: F403
from hekla.domain.events.pods import *  # noqa: F403
from hekla.domain.events.priorities import *  # noqa: F403
from hekla.domain.events.queues import *  # noqa: F403
from hekla.domain.events.schedules import *  # noqa: F403
from hekla.domain.events.templates import *  # noqa: F403
from hekla.domain.events.tenants import *  # noqa: F403
