"""Who may do what in the terminal or session of another person, by invitation."""

from enum import StrEnum


class GuestRole(StrEnum):
    """`OBSERVER` sees. `PEER` may also take the keyboard. `OWNER` may also invite others, and end it."""

    OBSERVER = "observer"
    PEER = "peer"
    OWNER = "owner"

    @property
    def may_type(self) -> bool:
        """Whether its input counts."""
        return self is not GuestRole.OBSERVER


class GuestEnd(StrEnum):
    """Why an invitation ended."""

    DECLINED = "declined"  # by the invited person
    LEFT = "left"  # the invited person gave it back
    REVOKED = "revoked"  # by somebody who may
    EXPIRED = "expired"
    CLOSED = "closed"  # with its terminal or session
