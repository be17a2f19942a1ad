"""Measures the proxy of sessions in a separate console, with a program in a real pod behind it.

pod_server.py   the program in the pod
place.py        the console, its job, and the sessions with it
requests.py     many small requests, one after another on some connections
transfers.py    uploads and downloads of many bytes
websockets.py   many websockets with echoes
keystrokes.py   a terminal in the pod
nginx.py        nginx as a plain proxy before the same program
measuring.py    all of it, in order
"""
