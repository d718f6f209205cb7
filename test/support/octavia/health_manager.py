"""Octavia's reader of heartbeats: binds a UDP port of 127.0.0.1 and prints its number, then each message as JSON, one a line.

Argument: the key. A datagram that Octavia refuses is printed as {"refused": "..."}.
"""

import json
import socket
import sys
import warnings

warnings.filterwarnings("ignore")

from octavia.amphorae.backends.health_daemon import status_message  # noqa: E402

receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
receiver.bind(("127.0.0.1", 0))
print(receiver.getsockname()[1], flush=True)
while True:
    data, _ = receiver.recvfrom(65536)
    try:
        message = status_message.unwrap_envelope(data, sys.argv[1])
    except Exception as error:  # pylint: disable=broad-except
        message = {"refused": str(error)}
    print(json.dumps(message), flush=True)
