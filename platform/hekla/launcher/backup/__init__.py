"""Backup of a whole Hekla into one file, and restore.

A backup contains a consistent snapshot of the database, the logs and records of pods, and the encryption key of
secrets. It leaves out what Hekla can create again: environments, sockets, messages. Hekla can run during a backup,
but not during a restore.
"""
