"""SSH to pods without a port of its own: the console ends SSH on a websocket, with people's own clients on it.

consumer.py      the websocket: the token, the pod, rights while it is open, and the record of its begin and end
transport.py     one SSH connection on the bytes of the websocket, with bounded buffers
server.py        what SSH clients may request: commands, shells, SFTP, and connections to ports of the pod
commands.py      a command in the pod, and the SSH channel of its input and outputs
forwards.py      a connection to a port of the pod
sftp.py          starts a server of SFTP in the pod: OpenSSH's, else `sftp_server.py`
sftp_server.py   a program for pods, which are only required to have Python
output_order.py  which connection sends the next piece of output
connections.py   the open connections of this process: their limits, and when they end
host_key.py      the key that the console proves itself with
"""
