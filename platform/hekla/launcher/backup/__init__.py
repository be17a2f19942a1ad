"""Backups of a whole Hekla in one file, and bringing one back.

A backup holds the database as of one instant, what pods wrote, and the key by which secrets are sealed. What can be
made again is left out: environments, sockets, messages. Nothing has to stop for a backup; a restoration wants a place
where no Hekla runs.
"""
