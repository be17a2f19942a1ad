"""Quotas: how much tenants and their members may have at once, and use in a month."""
