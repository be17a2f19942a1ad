"""Invitations: links with which people join a tenant, with a new or an existing account."""
