"""People: who they are, how they sign in, and who may do what."""
