"""Impersonation: a platform admin acts as a person, to see what they see: for limited time, and with a reason.

The person is notified. The session stays the admin's own; it only names an `Acting`, which is looked up again for every
request and every check of a socket. `hekla.pages.impersonation.reach` says which routes stay closed.
"""
