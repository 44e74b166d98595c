"""Proves what servers' tools are called: every name fits, and none takes another's."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from actors.rules.prompt.tools import (
    LONGEST_NAME,
    is_prefix,
    is_wanted,
    offered_name,
    server_of,
)
from connectors.mcp.source import prefix_of

FIT = re.compile(r"[A-Za-z0-9_-]{1,64}")

likely = st.text("ab_-. /", max_size=70)
names = likely | st.text(max_size=300)
prefixes = st.text("ab_-", min_size=1, max_size=32).filter(is_prefix)


@given(prefix=prefixes, name=names)
def test_every_name_is_one_that_providers_take(prefix: str, name: str) -> None:
    offered = offered_name(prefix, name)
    assert FIT.fullmatch(offered)
    assert len(offered) <= LONGEST_NAME
    assert offered == offered_name(prefix, name)


@given(one=st.tuples(prefixes, names), other=st.tuples(prefixes, names))
def test_two_tools_never_share_a_name(
    one: tuple[str, str], other: tuple[str, str]
) -> None:
    assert (offered_name(*one) == offered_name(*other)) == (one == other)


@given(prefix=prefixes, name=st.from_regex(r"\A[a-z][a-z0-9-]{0,20}\Z"))
def test_a_name_that_fits_is_kept(prefix: str, name: str) -> None:
    assert offered_name(prefix, name) == f"{prefix}__{name}"


@given(name=st.text(min_size=1, max_size=64))
def test_every_server_has_a_prefix(name: str) -> None:
    assert is_prefix(prefix_of(name))


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("files", True),
        ("my-files2", True),
        ("a_b", True),
        ("", False),
        ("a_", False),
        ("a__b", False),
        ("_a", False),
        ("a b", False),
        ("x" * 33, False),
    ],
)
def test_prefixes_end_where_the_first_joint_is(text: str, *, fits: bool) -> None:
    assert is_prefix(text) is fits


@pytest.mark.parametrize(
    ("wanted", "name", "is_there"),
    [
        ("mcp:files", "read_file", True),
        ("mcp:files/read_*", "read_file", True),
        ("mcp:files/read_*", "write_file", False),
        ("mcp:files/read_file", "read_file", True),
        ("mcp:file", "read_file", False),
        ("mcp:other", "read_file", False),
        ("clock", "read_file", False),
        ("files", "read_file", False),
    ],
)
def test_an_agent_has_the_tools_it_lists(
    wanted: str, name: str, *, is_there: bool
) -> None:
    assert is_wanted(["clock", wanted], "files", name) is is_there


def test_what_is_no_server_names_none() -> None:
    assert (server_of("mcp:a/b"), server_of("clock"), server_of("mcp:")) == (
        "a",
        "",
        "",
    )
