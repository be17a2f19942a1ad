"""The kinds of events in the event log: one frozen model each, with the model's name as its kind.

Pages, history, audit and the controller read the log, and its rows are kept for a long time. So a payload holds facts
and no documents, unknown fields are refused, and every text has a limit. Actor, time, tenant and subject are columns of
the log. No payload holds a secret.

One file for each subject. A new kind is a class in one of them, and needs nothing else.
"""

from hekla.domain.events.alerts import *  # noqa: F403
from hekla.domain.events.announcements import *  # noqa: F403
from hekla.domain.events.base import *  # noqa: F403
from hekla.domain.events.batches import *  # noqa: F403
from hekla.domain.events.clusters import *  # noqa: F403
from hekla.domain.events.evidence import *  # noqa: F403
from hekla.domain.events.flows import *  # noqa: F403
from hekla.domain.events.invitations import *  # noqa: F403
from hekla.domain.events.jobs import *  # noqa: F403
from hekla.domain.events.people import *  # noqa: F403
from hekla.domain.events.pods import *  # noqa: F403
from hekla.domain.events.prices import *  # noqa: F403
from hekla.domain.events.queues import *  # noqa: F403
from hekla.domain.events.reports import *  # noqa: F403
from hekla.domain.events.schedules import *  # noqa: F403
from hekla.domain.events.templates import *  # noqa: F403
from hekla.domain.events.tenants import *  # noqa: F403
