"""People: accounts, sign-in, roles and permissions."""
