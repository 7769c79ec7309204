"""The ports of one server, from the environment; launch.py and ready.py read them alike."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass

from serving.errors import PortError

DEFAULT_INFERENCE_PORT = 7080
HIGHEST_PORT = 65535
MANAGEMENT_VARIABLE = "MARVEC_MANAGEMENT_PORT"
METRICS_VARIABLE = "MARVEC_METRICS_PORT"


@dataclass(frozen=True)
class Ports:
    """The three HTTP ports and the variable that set (or would set) the first.

    Attributes:
        inference: Predictions, on every interface.
        management: Models and workers, on loopback.
        metrics: Prometheus text, on loopback.
        inference_variable: The variable to name when the inference port is at fault.
    """

    inference: int
    management: int
    metrics: int
    inference_variable: str

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Ports:
        """Reads AIP_HTTP_PORT (Vertex AI), else PORT (Cloud Run), else 7080, and the two loopback ports.

        Args:
            environment: Usually `os.environ`.

        Returns:
            Three different ports.

        Raises:
            PortError: A value is no port number, or two ports are the same.
        """
        variable = next((name for name in ("AIP_HTTP_PORT", "PORT") if environment.get(name)), "AIP_HTTP_PORT")
        inference = _port(environment, variable, DEFAULT_INFERENCE_PORT)
        ports = cls(
            inference=inference,
            management=_port(environment, MANAGEMENT_VARIABLE, inference + 1),
            metrics=_port(environment, METRICS_VARIABLE, inference + 2),
            inference_variable=variable,
        )
        seen: dict[int, str] = {}
        for name, port in ports.by_variable().items():
            if port in seen:
                raise PortError(f"{seen[port]} and {name} are both port {port}: give each its own")
            seen[port] = name
        return ports

    def by_variable(self) -> dict[str, int]:
        """Each port under the name of the variable that sets it."""
        return {
            self.inference_variable: self.inference,
            MANAGEMENT_VARIABLE: self.management,
            METRICS_VARIABLE: self.metrics,
        }

    def for_config(self) -> dict[str, str]:
        """The variables that config.properties refers to as `$$NAME$$`."""
        return {
            "AIP_HTTP_PORT": str(self.inference),
            MANAGEMENT_VARIABLE: str(self.management),
            METRICS_VARIABLE: str(self.metrics),
        }

    def check_free(self) -> None:
        """Makes sure that nothing listens on the ports.

        Raises:
            PortError: A port is taken, or may not be bound.
        """
        hosts = {self.inference_variable: "0.0.0.0"}
        for name, port in self.by_variable().items():
            try:
                require_free(hosts.get(name, "127.0.0.1"), port)
            except OSError as err:
                raise PortError(
                    f"port {port} ({name}) cannot be used ({err.strerror}): "
                    f"stop what listens there, or set {name} to a free port"
                ) from err


def free_ports(count: int) -> list[int]:
    """Free loopback ports, for what must have a port that nobody asks for (TorchServe's gRPC cannot be switched off).

    Args:
        count: How many.

    Returns:
        `count` different ports, free a moment ago.
    """
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_STREAM) for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]
    finally:
        for one in sockets:
            one.close()


def _port(environment: Mapping[str, str], variable: str, default: int) -> int:
    text = environment.get(variable, "")
    if not text:
        if default > HIGHEST_PORT:
            raise PortError(f"{variable} would be {default}: set it to a port from 1 to {HIGHEST_PORT}")
        return default
    if not (len(text) <= 5 and text.isascii() and text.isdigit() and 1 <= int(text) <= HIGHEST_PORT):
        raise PortError(f"{variable}={text[:40]!r}: expected a port number from 1 to {HIGHEST_PORT}")
    return int(text)


def require_free(host: str, port: int) -> None:
    """Binds a port for a moment.

    Args:
        host: The address to bind.
        port: The port.

    Raises:
        OSError: The port is taken, or may not be bound.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as one:
        # As the server itself does: connections of an earlier boot in TIME_WAIT are no obstacle, a listener is.
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.bind((host, port))
