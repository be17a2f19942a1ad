"""A platform admin acts for a person, to see what they see: for a while, with a reason, and told to whom it concerns.

The session stays the admin's own; it only names an `Acting`, which is looked up anew for every request and every look
of a socket. See `reach` for what stays closed meanwhile.
"""
