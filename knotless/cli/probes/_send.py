"""Program that runs in a host and sends each line of standard input (hexadecimal) as a frame.

``python -m knotless.cli.probes._send INTERFACE``; prints ``ready``, and ``sent`` after each.
"""

from __future__ import annotations

import socket
import sys


def main() -> None:
    """Send until the input ends."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as interface:
        interface.bind((sys.argv[1], 0))
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        for line in sys.stdin:
            interface.send(bytes.fromhex(line))
            sys.stdout.write("sent\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
