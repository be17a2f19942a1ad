"""The proxy of sessions: ports of running pods and tools in them, each on an origin of its own.

hosts.py      finds the requests to hosts of sessions, before anything else of the console
paths.py      the part of a path that names a session, where all sessions share one host
admissions.py     who is in which session: one check of rights for requests and websockets, again every two seconds
presence.py   reports who uses sessions of this process
activity.py   what of the traffic shows that a person uses a session
headers.py    what of a request reaches the tool, and what of its response reaches the browser
upstream.py   connections to the pod, and the parser of responses
exchange.py   one HTTP request and its response, streamed both ways
sockets.py    one websocket
pages.py      the few pages that the proxy itself shows

The target of a connection comes from the row of the session only. Nothing of a request names it.
"""
