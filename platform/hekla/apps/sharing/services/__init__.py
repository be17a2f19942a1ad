"""Changes to shared terminals and sessions. Each change is one unit of work."""

from hekla.apps.sharing.services.forks import claim_forks, finish_fork, fork
from hekla.apps.sharing.services.guests import (
    MAX_HOURS,
    accept,
    decline,
    end_guests_of,
    end_shared_session,
    invite,
    require_own,
    revoke,
    tidy_guests,
)
from hekla.apps.sharing.services.recordings import (
    MAX_BYTES,
    begin_recording,
    cut_recording,
    delete_recording,
    finish_recording,
    known_secrets,
    tidy_recordings,
)
from hekla.apps.sharing.services.terminals import close_terminal, open_terminal, record_guest

__all__ = [
    "MAX_BYTES",
    "MAX_HOURS",
    "accept",
    "begin_recording",
    "claim_forks",
    "close_terminal",
    "cut_recording",
    "decline",
    "delete_recording",
    "end_guests_of",
    "end_shared_session",
    "finish_fork",
    "finish_recording",
    "fork",
    "invite",
    "known_secrets",
    "open_terminal",
    "record_guest",
    "require_own",
    "revoke",
    "tidy_guests",
    "tidy_recordings",
]
