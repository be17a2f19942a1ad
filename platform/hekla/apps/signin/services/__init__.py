"""Second factors: set up, verify, remove. Each function is one unit of work."""

from hekla.apps.signin.services.app import begin, confirm, prove, remove, secret_of
from hekla.apps.signin.services.counting import MOST_WRONG, WRONG_WITHIN
from hekla.apps.signin.services.ending import reset
from hekla.apps.signin.services.keys import MOST_KEYS, add_key, prove_with_key, remove_key
from hekla.apps.signin.services.recovery import renew_codes

__all__ = [
    "MOST_KEYS",
    "MOST_WRONG",
    "WRONG_WITHIN",
    "add_key",
    "begin",
    "confirm",
    "prove",
    "prove_with_key",
    "remove",
    "remove_key",
    "renew_codes",
    "reset",
    "secret_of",
]
