"""Ports from the environment: defaults, precedence, and every way to get them wrong."""

from __future__ import annotations

import socket

import pytest

from serving.errors import PortError
from serving.ports import Ports, free_ports


def test_defaults_follow_the_inference_port() -> None:
    assert Ports.from_environment({}) == Ports(7080, 7081, 7082, "AIP_HTTP_PORT")
    assert Ports.from_environment({"PORT": "8080"}) == Ports(8080, 8081, 8082, "PORT")
    assert Ports.from_environment({"AIP_HTTP_PORT": "9000", "PORT": "8080"}) == Ports(9000, 9001, 9002, "AIP_HTTP_PORT")


def test_the_loopback_ports_can_be_set() -> None:
    ports = Ports.from_environment({"MARVEC_MANAGEMENT_PORT": "1", "MARVEC_METRICS_PORT": "65535"})
    assert ports == Ports(7080, 1, 65535, "AIP_HTTP_PORT")
    assert ports.for_config() == {
        "AIP_HTTP_PORT": "7080",
        "MARVEC_MANAGEMENT_PORT": "1",
        "MARVEC_METRICS_PORT": "65535",
    }


@pytest.mark.parametrize("value", ["0", "65536", "-1", "80.0", "http", " 80", "٨٠"])
def test_no_port_number(value: str) -> None:
    with pytest.raises(PortError) as caught:
        Ports.from_environment({"PORT": value})
    assert str(caught.value) == f"PORT={value!r}: expected a port number from 1 to 65535"


def test_a_number_of_thousands_of_digits_is_no_port() -> None:
    with pytest.raises(PortError, match=r"PORT='9{40}': expected a port number"):
        Ports.from_environment({"PORT": "9" * 5000})


def test_a_clash_names_both_variables() -> None:
    with pytest.raises(PortError) as caught:
        Ports.from_environment({"MARVEC_METRICS_PORT": "7081"})
    assert str(caught.value) == "MARVEC_MANAGEMENT_PORT and MARVEC_METRICS_PORT are both port 7081: give each its own"


def test_no_room_above_the_highest_port() -> None:
    with pytest.raises(PortError) as caught:
        Ports.from_environment({"AIP_HTTP_PORT": "65535"})
    assert str(caught.value) == "MARVEC_MANAGEMENT_PORT would be 65536: set it to a port from 1 to 65535"


def test_a_taken_port_is_found() -> None:
    inference, management, metrics = free_ports(3)
    ports = Ports(inference, management, metrics, "PORT")
    ports.check_free()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", inference))
        taken.listen()
        with pytest.raises(PortError, match=rf"^port {inference} \(PORT\) cannot be used \(Address already in use\)"):
            ports.check_free()
    ports.check_free()
