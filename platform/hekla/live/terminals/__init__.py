"""Terminals of pods on pages.

output.py     what a terminal printed, by byte offset, so that every page reads from where it is
terminal.py   one terminal: its command in the pod, its size, who holds its keyboard, when it ends
registry.py   the open terminals of this process, and their limits
notices.py    prints warnings of idle sessions
claims.py     which process runs a terminal, if there are several
consumer.py   the websocket of a page that shows one

A terminal does not depend on the pages that show it: a lost connection, a reload or a second tab continues with the
same one. All of them read the same output from their own offsets. One page holds the keyboard; the others watch.
"""
