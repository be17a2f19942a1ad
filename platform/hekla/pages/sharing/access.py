"""Who may open the pages of this feature. Invited people may more, by their invitation."""

from hekla.apps.accounts.access import ACTS_ON_THE_JOB, RETRIES, SIGNED_IN, RouteAccess, who

_ITS_OWNER = who(rest="refused", stranger="absent", tenant_admin="ok")
_INVITED = who(rest="absent", viewer="ok")
_ENDS = ACTS_ON_THE_JOB | {"viewer": "refused", "member": "absent", "manager": "absent"}

ROUTES = {
    "sharing:mine": RouteAccess(SIGNED_IN),
    "sharing:accept": RouteAccess(post=_INVITED),
    "sharing:decline": RouteAccess(post=_INVITED),
    "sharing:enter": RouteAccess(post=_INVITED),
    "sharing:end": RouteAccess(post=who(rest="absent", viewer="refused")),  # invited as a peer
    "sharing:revoke": RouteAccess(post=_ENDS),
    "sharing:terminal": RouteAccess(ACTS_ON_THE_JOB, _ITS_OWNER),
    "sharing:session": RouteAccess(ACTS_ON_THE_JOB, _ITS_OWNER),
    "sharing:fork": RouteAccess(RETRIES, RETRIES),
    "sharing:of_job": RouteAccess(ACTS_ON_THE_JOB),
    "sharing:recording": RouteAccess(ACTS_ON_THE_JOB),
    "sharing:cast": RouteAccess(ACTS_ON_THE_JOB),
    "sharing:cut": RouteAccess(post=ACTS_ON_THE_JOB),
    "sharing:delete": RouteAccess(post=ACTS_ON_THE_JOB),
}
