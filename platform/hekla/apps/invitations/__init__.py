"""Invitations: a link by which somebody joins a tenant, with an account that they make or have."""
