"""Proves which IP addresses and ports may be connected to."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given, strategies as st

from connectors.fetch.addresses import (
    BLOCKED,
    METADATA,
    AddressRules,
    read_allowed,
    why_bad_port,
    why_blocked,
)

ip = ipaddress.ip_address

BAD = """
0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.100.100.200 100.127.255.255
127.0.0.1 127.1.2.3 127.255.255.254 168.63.129.16 169.254.0.1 169.254.169.254
169.254.170.2 172.16.0.1 172.31.255.255 192.0.0.1 192.0.0.192 192.0.2.1 192.88.99.1
192.168.0.1 192.168.255.255 198.18.0.1 198.19.255.255 198.51.100.7 203.0.113.9
224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 :: ::1 ::2 ::7f00:1 ::127.0.0.1
::8.8.8.8 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 ::ffff:0:127.0.0.1
::ffff:0:8.8.8.8 64:ff9b::127.0.0.1 64:ff9b::10.0.0.1 64:ff9b::169.254.169.254
64:ff9b::a9fe:a9fe 64:ff9b:1::8.8.8.8 64:ff9b:1::1 100::1 2001::1
2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:2::1 2001:10::1 2001:20::1 2001:db8::1
2002:7f00:1:: 2002:a9fe:a9fe:: 2002:808:808::1 3fff::1 3fff:fff::1 4000::1 5f00::1
fc00::1 fd00::1 fd00:ec2::254 fd20:ce::254 fe80::1 fe80::1%eth0 fe80::5efe:127.0.0.1
febf::1 fec0::1 feff::1 ff02::1 ff0e::1 2606:4700::5efe:127.0.0.1
2606:4700::200:5efe:10.0.0.1 2606:4700::5efe:169.254.169.254 1::1 1fff::1 8000::1
f000::1
"""

GOOD = """
1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.1 93.184.216.34 100.63.255.255 100.128.0.1
126.255.255.255 128.0.0.1 169.253.255.255 169.255.0.1 172.15.255.255 172.32.0.1
191.255.255.255 192.0.1.1 192.167.255.255 192.169.0.1 198.17.255.255 198.20.0.1
223.255.255.255 2001:200::1 2001:4860:4860::8888 2003::1 2606:4700:4700::1111
2a00::1 3ffe::1 3fff:1000::1 ::ffff:8.8.8.8 64:ff9b::8.8.8.8 2606:4700::5efe:8.8.8.8
"""


@pytest.mark.parametrize("address", BAD.split())
def test_what_is_not_public_is_blocked(address: str) -> None:
    assert why_blocked(ip(address))


@pytest.mark.parametrize("address", GOOD.split())
def test_what_is_public_is_not(address: str) -> None:
    assert not why_blocked(ip(address))


def test_the_reason_names_what_is_inside() -> None:
    text = why_blocked(ip("64:ff9b::a9fe:a9fe"))
    assert text == "carries 169.254.169.254: a cloud's metadata"


@given(number=st.integers(0, 2**32 - 1))
def test_an_address_is_as_blocked_in_every_spelling(number: int) -> None:
    plain = ipaddress.IPv4Address(number)
    for prefix in ("::ffff:0:0", "64:ff9b::"):
        carried = ipaddress.IPv6Address(int(ip(prefix)) + number)
        assert bool(why_blocked(carried)) == bool(why_blocked(plain))


@given(number=st.integers(0, 2**128 - 1))
def test_outside_of_what_is_given_out_nothing_is_public(number: int) -> None:
    address = ipaddress.IPv6Address(number)
    if number >> 125 != 1 and address not in ipaddress.ip_network("64:ff9b::/96"):
        assert why_blocked(address) or address.ipv4_mapped is not None


@given(data=st.data())
def test_every_address_of_a_blocked_network_is_blocked(data: st.DataObject) -> None:
    network, _ = data.draw(st.sampled_from(BLOCKED))
    last = network.num_addresses - 1
    address = network[data.draw(st.integers(0, last))]
    assert why_blocked(address)


@pytest.mark.parametrize("port", [80, 443, 1024, 3000, 8080, 8443, 65_535])
def test_ports_of_the_web_are_open(port: int) -> None:
    assert not why_bad_port(port)


@pytest.mark.parametrize(
    "port", [0, 1, 21, 22, 23, 25, 53, 110, 143, 445, 587, 993, 2375, 6000, 6379, 11211]
)
def test_ports_of_other_services_are_not(port: int) -> None:
    assert why_bad_port(port)


@pytest.mark.parametrize(
    ("entry", "host", "port", "address", "is_allowed"),
    [
        ("10.0.0.0/8", "intern", 80, "10.1.2.3", True),
        ("10.0.0.0/8", "intern", 80, "::ffff:10.1.2.3", True),
        ("10.0.0.0/8", "intern", 80, "64:ff9b::10.1.2.3", False),
        ("10.0.0.0/8", "intern", 22, "10.1.2.3", False),
        ("10.0.0.0/8", "intern", 80, "192.168.1.1", False),
        ("10.1.2.3", "intern", 8080, "10.1.2.3", True),
        ("10.1.2.3", "intern", 8080, "10.1.2.4", False),
        ("fd00::/8", "intern", 80, "fd12::1", True),
        ("169.254.0.0/16", "meta", 80, "169.254.169.254", False),
        ("169.254.0.0/16", "meta", 80, "169.254.1.1", True),
        ("169.254.169.254", "meta", 80, "169.254.169.254", True),
        ("search.lan:8888", "search.lan", 8888, "127.0.0.1", True),
        ("Search.LAN.:8888", "search.lan", 8888, "127.0.0.1", True),
        ("search.lan:8888", "search.lan", 8889, "127.0.0.1", False),
        ("search.lan:8888", "other.lan", 8888, "127.0.0.1", False),
        ("search.lan:22", "search.lan", 22, "127.0.0.1", True),
        ("127.0.0.1:6379", "127.0.0.1", 6379, "127.0.0.1", True),
        ("[::1]:8080", "::1", 8080, "::1", True),
        ("[0:0::1]:8080", "::1", 8080, "::1", True),
        ("[::1]:8080", "::1", 8081, "::1", False),
    ],
)
def test_the_operator_makes_narrow_exceptions(
    entry: str, host: str, port: int, address: str, *, is_allowed: bool
) -> None:
    why = AddressRules([entry]).why_refused(host, port, ip(address))
    assert (why == "") == is_allowed


@pytest.mark.parametrize(
    "entry",
    [
        *("0.0.0.0/0", "::/0", "8.0.0.0/7", "f800::/5", "10.0.0.1/8", "lan", "lan:"),
        *("lan:70000", "http://lan:80", "lan:80/x", "", "*:80", "*", "[::1]", "a b:80"),
    ],
)
def test_an_exception_that_is_wrong_or_too_wide_is_refused(entry: str) -> None:
    with pytest.raises(ValueError, match=r"network|opens"):
        read_allowed(entry)


def test_metadata_is_never_public() -> None:
    assert all(why_blocked(address) == "a cloud's metadata" for address in METADATA)
