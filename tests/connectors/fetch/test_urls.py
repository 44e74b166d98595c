"""Proves what is read in an address, and that what can be read in two ways is not."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given, strategies as st

from connectors.fetch.addresses import follow, read_url, why_blocked
from connectors.fetch.messages import FetchRefusedError

REFUSED = [
    # No web address at all.
    "", " ", "x", "example.com", "//example.com", "/etc/passwd", "http:", "http:/",
    "http://", "http:///path", "http://?q", "http://#f", "http:example.com",
    "http:/example.com", "https:127.0.0.1", "file:///etc/passwd", "file://localhost/etc",
    "ftp://example.com/", "gopher://127.0.0.1:6379/_FLUSHALL", "dict://127.0.0.1:11211/",
    "ldap://127.0.0.1/", "tftp://127.0.0.1/", "jar:http://example.com!/",
    "data:text/html,hi", "javascript:alert(1)", "ws://example.com/", "unix:///run/x",
    "netdoc:///etc/passwd", "view-source:http://example.com", "HTTP+UNIX://x/",
    # A login, or what looks like the host and is one.
    "http://user@example.com/", "http://user:pw@example.com/", "http://@example.com/",
    "http://:@example.com/", "http://example.com@127.0.0.1/",
    "http://example.com:80@127.0.0.1/", "http://127.0.0.1:80@example.com/",
    "http://1.1.1.1 &@2.2.2.2# @3.3.3.3/", "http://a@b@c/",
    "http://example.com%40127.0.0.1/", "http://example.com\uff20127.0.0.1/",
    # Backslashes, spaces, control characters.
    "http://example.com\\@127.0.0.1/", "http:\\\\127.0.0.1\\", "http://127.0.0.1\\x",
    "http://exa mple.com/", "http://example.com/a b", "http://example.com\t.evil/",
    "ht\ntp://example.com/", "http://exam\nple.com/", "http://example.com/\r\nHost: x",
    "http://example.com\x00.evil/", "http://example.com/\x00", "http://exa\u2028mple/",
    "http://example.com/\x7f", "http://\u00a0example.com/", "http://exa\x1bmple.com/",
    # Per cent signs in a host.
    "http://%31%32%37.0.0.1/", "http://127.0.0.1%00.example.com/", "http://%6cocalhost/",
    "http://example.com%2f@x/", "http://example%2ecom/", "http://127%2e0%2e0%2e1/",
    # Numbers that some readers take for 127.0.0.1 or another address.
    "http://2130706433/", "http://0x7f000001/", "http://017700000001/", "http://0/",
    "http://127.1/", "http://127.0.1/", "http://0x7f.1/", "http://0177.0.0.1/",
    "http://0x7f.0x0.0x0.0x1/", "http://127.0.0.0x1/", "http://00000177.1/",
    "http://127.0.0.01/", "http://127.000.000.001/", "http://1.2.3.4.5/",
    "http://256.1.1.1/", "http://1.2.3/", "http://2852039166/", "http://0xa9fea9fe/",
    "http://169.254.43518/", "http://0251.0376.0251.0376/", "http://3232235777/",
    "http://4294967296/", "http://0x/", "http://0x7f.0.0.0x/", "http://1.1.1.0x1/",
    "http://example.0x7f/", "http://example.1/", "http://127.0.0.1../", "http://08/",
    "http://\uff11\uff12\uff17.1/", "http://\u2460\u2461\u2466.1/",
    # Brackets.
    "http://[::1/", "http://::1/", "http://::1]/", "http://[]/", "http://[::g]/",
    "http://[127.0.0.1]/", "http://[::1]x/", "http://[fe80::1%25eth0]/",
    "http://[fe80::1%eth0]/", "http://[v1.x]/", "http://[::1]:80:90/", "http://[[::1]]/",
    "http://x[::1]/", "http://[::ffff:127.1]/", "http://1:2:3/",
    # Ports.
    "http://example.com:0/", "http://example.com:65536/", "http://example.com:99999/",
    "http://example.com:-1/", "http://example.com:80a/", "http://example.com:+80/",
    "http://example.com: 80/", "http://example.com:\uff18\uff10/", "http://:80/",
    "http://example.com:0x50/", "http://example.com:000080/", "http://example.com:80:80/",
    # Names that no name can be.
    "http://-example.com/", "http://example-.com/", "http://exam!ple.com/",
    "http://exa$mple.com/", "http://exa,mple.com/", "http://a..b/", "http://.a/",
    "http://./", "http://../", "http://exam*ple.com/", "http://a;b/", "http://a=b/",
    "http://" + "a" * 64 + ".com/", "http://" + "a." * 130 + "com/", "http://a'b/",
    "http://\u2f8fexample.com\u2100/", "http://\U0001f4a9\u200b\u202e/", "http://{x}/",
    "http://<x>/", "http://x|y/", "http://x^y/", "http://x`y/", 'http://x"y/',
    "http://example.com/" + "a" * 8_000, "http://[" + "a" * 7_000 + "]/",
    "http://" + "\u00fc" * 7_000 + "/", "http://" + "1" * 7_000 + "/",
]  # fmt: skip

READ = [
    ("http://example.com", "http://example.com/"),
    ("HTTP://EXAMPLE.com/A?B#c", "http://example.com/A?B"),
    ("  https://example.com/x\n", "https://example.com/x"),
    ("http://example.com./", "http://example.com/"),
    ("http://example.com:80/", "http://example.com/"),
    ("https://example.com:443/", "https://example.com/"),
    ("https://example.com:/", "https://example.com/"),
    ("http://example.com:8080/", "http://example.com:8080/"),
    ("http://example.com?q=1", "http://example.com/?q=1"),
    ("http://example.com/?u=http://x/y", "http://example.com/?u=http://x/y"),
    ("http://example.com/a@b:c", "http://example.com/a@b:c"),
    ("http://b\u00fccher.example/\u00fc?\u00e9", "http://xn--bcher-kva.example/%C3%BC?%C3%A9"),
    ("http://\uff45xample\u3002com/", "http://example.com/"),
    ("http://my_host.example/", "http://my_host.example/"),
    ("http://1.1.1.1/", "http://1.1.1.1/"),
    ("http://1.1.1.1./", "http://1.1.1.1/"),
    ("http://\uff11.1.1.1/", "http://1.1.1.1/"),
    ("http://[2606:4700::0:1111]/", "http://[2606:4700::1111]/"),
    ("http://[2606:4700::1111]:8080/x", "http://[2606:4700::1111]:8080/x"),
    ("http://example.com/a%20b%zz", "http://example.com/a%20b%zz"),
    ('http://example.com/<a>|"', "http://example.com/%3Ca%3E%7C%22"),
]  # fmt: skip


@pytest.mark.parametrize("url", REFUSED, ids=ascii)
def test_what_can_be_read_in_two_ways_is_refused(url: str) -> None:
    with pytest.raises(FetchRefusedError) as caught:
        read_url(url)
    assert 10 < len(str(caught.value)) < 400


def test_the_corpus_is_as_large_as_it_should_be() -> None:
    assert len(set(REFUSED)) == len(REFUSED) >= 140


@pytest.mark.parametrize(("url", "read"), READ, ids=ascii)
def test_an_address_has_one_spelling(url: str, read: str) -> None:
    assert read_url(url).url == read
    assert read_url(read).url == read


ODD = "http://sam:s3cret@exa\u2100mple/"
"""Which Python's own reader complains of, repeating it."""


def test_a_password_is_never_shown() -> None:
    for url in (
        "http://sam:s3cret@x/",
        "http://s3cret@x y/",
        "ftp://sam:s3cret@x/",
        ODD,
    ):
        with pytest.raises(FetchRefusedError) as caught:
            read_url(url)
        assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("location", "url"),
    [
        ("/x", "https://a.example/x"),
        ("x?y", "https://a.example/b/x?y"),
        ("//b.example/", "https://b.example/"),
        ("http://b.example", "http://b.example/"),
        ("/a b", "https://a.example/a%20b"),
        ("", "https://a.example/b/c"),
        ("#f", "https://a.example/b/c"),
        ("../../../x", "https://a.example/x"),
    ],
)
def test_a_redirect_leads_on_from_where_it_is(location: str, url: str) -> None:
    assert follow(read_url("https://a.example/b/c"), location).url == url


@pytest.mark.parametrize(
    "location",
    [
        "file:///etc/passwd",
        "gopher://x/",
        "http://",
        "http://u@x/",
        "http:\\\\x/",
        "a\0",
        "http://0x7f.1/",
        "http://[::1",
        "javascript:x",
        "//x y/",
    ],
)
def test_a_redirect_leads_nowhere_that_is_refused(location: str) -> None:
    with pytest.raises(FetchRefusedError):
        follow(read_url("https://a.example/b/c"), location)


PIECES = (
    *(
        "http",
        "https",
        "file",
        "://",
        ":",
        "/",
        "//",
        "\\",
        "@",
        "?",
        "#",
        "[",
        "]",
        "%",
    ),
    *("127.0.0.1", "127.1", "0x7f", "2130706433", "::1", "::ffff:7f00:1", "localhost"),
    *("example.com", ".", "..", "80", "%2e", "%00", "\0", "\t", "\n", " ", "\uff0e"),
    *("\u3002", "1", "0177", "a", "-", "_", "\u200b", "\u00df", "\ud800", "&", ";"),
)
pieces = st.sampled_from(PIECES)


@given(parts=st.lists(pieces | st.text(max_size=4), max_size=10))
def test_nothing_but_a_checked_address_comes_through(parts: list[str]) -> None:
    url = "http://" * (len(parts) % 3 > 0) + "".join(parts)
    try:
        target = read_url(url)
    except FetchRefusedError as error:
        str(error).encode()  # may be written down
        return
    assert target.scheme in {"http", "https"}
    assert target.host.isascii()
    assert target.path.startswith("/")
    assert target.path.isascii()
    assert 1 <= target.port <= 65_535
    assert read_url(target.url) == target
    if target.host.replace(".", "").isdigit() or ":" in target.host:
        ipaddress.ip_address(target.host)


@given(number=st.integers(0, 2**32 - 1), data=st.data())
def test_a_number_is_an_address_only_in_its_plain_spelling(
    number: int, data: st.DataObject
) -> None:
    plain = ipaddress.IPv4Address(number)
    octets = [*plain.packed]
    write = st.sampled_from(["{}", "{:#x}", "0{:o}", "{:03}", "0x{:08X}"])
    spelled = ".".join(data.draw(write).format(octet) for octet in octets)
    if spelled == str(plain):
        assert read_url(f"http://{spelled}/").host == spelled
    else:
        with pytest.raises(FetchRefusedError):
            read_url(f"http://{spelled}/")
    assert why_blocked(plain) or plain.is_global
