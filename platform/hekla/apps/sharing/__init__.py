"""Invitations to the terminal or session of another person, and the recordings of shared terminals."""
