"""Whether something at an address may be a cluster of Ray: its own connection tries whatever answers for minutes."""

import os
import socket
import struct
from typing import Any

from tfm.pipeline.cluster.authentication import capture_stderr, refused_token_problem
from tfm.pipeline.errors import RecipeError

CONNECT_SECONDS = 10.0
TLS_ENV_VAR = "RAY_USE_TLS"
HTTP2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HTTP2_EMPTY_SETTINGS = struct.pack(">HBBBI", 0, 0, 4, 0, 0)
HTTP2_HEADER_BYTES = 9
HTTP2_SETTINGS_TYPE = 4
HTTP2_TYPE_OFFSET = 3
ADDRESS_REMEDY = "give auto, or HOST:PORT as `ray start --head` prints it"


def check_cluster_answers(address: str, seconds: float = CONNECT_SECONDS) -> None:
    """Raise RecipeError if nothing answers at an address, or a server of another kind than Ray's.

    Ray speaks gRPC, whose servers begin with the settings of HTTP/2 (RFC 9113, 3.4).

    Args:
        address: HOST:PORT.
        seconds: patience for the connection, and for the first bytes.
    """
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), seconds) as connection:
            if os.environ.get(TLS_ENV_VAR, "0").lower() in ("", "0", "false") and not _answers_as_http2(connection):
                raise RecipeError(f"--cluster {address}: a server answers that is not Ray's; {ADDRESS_REMEDY}")
    except (OSError, ValueError, OverflowError) as error:
        raise RecipeError(f"--cluster {address}: there is no cluster of Ray ({error}); {ADDRESS_REMEDY}") from None


def check_cluster_accepts(ray: Any, address: str) -> None:
    """Raise RecipeError if a cluster refuses the token, or a server has other services than a cluster's, as that of
    Ray's client: asked once, it says so at once, while Ray's connection asks again for 20 seconds.

    Args:
        ray: the module.
        address: HOST:PORT, where something of Ray answers.
    """
    try:
        from ray._raylet import GcsClient  # by which `ray health-check` asks
    except ImportError:
        return
    try:
        with capture_stderr():
            GcsClient(address=address)
    except ray.exceptions.RayError as error:
        reason = " ".join(str(error).split())
        problem = refused_token_problem(reason) or f"no cluster of Ray answers ({reason:.200}); {ADDRESS_REMEDY}"
        raise RecipeError(f"--cluster {address}: {problem}") from error


def _answers_as_http2(connection: socket.socket) -> bool:
    """Whether the first frame of an answer has settings of HTTP/2; not if it is none, or does not come in time."""
    try:
        connection.sendall(HTTP2_PREFACE + HTTP2_EMPTY_SETTINGS)
        header = b""
        while len(header) < HTTP2_HEADER_BYTES and (part := connection.recv(HTTP2_HEADER_BYTES - len(header))):
            header += part
    except (TimeoutError, ConnectionError):
        return False
    return len(header) == HTTP2_HEADER_BYTES and header[HTTP2_TYPE_OFFSET] == HTTP2_SETTINGS_TYPE
