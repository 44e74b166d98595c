"""Proves what follows from a confinement, without starting anything."""

from __future__ import annotations

import functools
import operator
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from msgspec.structs import replace

from connectors.config.app import AppConfig, StoreConfig
from connectors.config.tools import SandboxConfig, WorkspaceConfig
from connectors.sandbox.linux import landlock
from connectors.sandbox.linux.seccomp import (
    ALLOW,
    ARCHITECTURES,
    BROKERED,
    DENIED,
    HIGHEST_CALL,
    KILL,
    NOTIFY,
    program,
)
from connectors.sandbox.orders import Means, filter_for, refuse_ports, scrubbed
from connectors.sandbox.plan import (
    Confinement,
    SandboxError,
    SandboxFigures,
    Standing,
    Territory,
    territory,
)
from connectors.sandbox.process import Capture
from connectors.sandbox.runner import (
    FEATURES,
    Machine,
    candidates,
    open_sandbox,
    refusal,
    shortcomings,
)
from runtime.telemetry.metrics import Metrics
from tests.support.tiers import examples

MACHINES = sorted(ARCHITECTURES)
COMPARED: dict[int, Callable[[int, int], object]] = {
    0x15: operator.eq,
    0x25: operator.gt,
    0x35: operator.ge,
    0x45: lambda held, bits: held & bits,
}
ERRORS = {1: "EPERM", 13: "EACCES", 38: "ENOSYS"}


def verdict(body: bytes, audit: int, number: int, *arguments: int) -> int:
    """Run a filter as the kernel's machine does."""
    words = [*arguments, 0, 0, 0, 0, 0, 0][:6]
    seen = struct.pack("=iIQ6Q", number, audit, 0, *words)
    steps = [struct.unpack_from("=HBBI", body, at) for at in range(0, len(body), 8)]
    at = held = 0
    while True:
        code, if_true, if_false, constant = steps[at]
        at += 1
        if code == 0x20:
            (held,) = struct.unpack_from("=I", seen, constant)
        elif code == 0x54:
            held &= constant
        elif code == 0x06:
            return int(constant)
        else:
            at += if_true if COMPARED[code](held, constant) else if_false


made = functools.cache(program)


def said(machine: str, name: str, *arguments: int, tcp: bool = True) -> str:
    """Say what the filter answers to a call."""
    found = ARCHITECTURES[machine]
    body = made(machine, tcp=tcp, may_truncate=True, is_brokered=True)
    given = verdict(body, found.audit, found.numbers[name], *arguments)
    if given == ALLOW:
        return "allowed"
    return "asked" if given == NOTIFY else ERRORS[given & 0xFFFF]


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("name", "arguments", "answer"),
    [
        ("socket", (2, 1, 0), "allowed"),
        ("socket", (10, 0o2000001, 6), "allowed"),
        ("socket", (2, 2, 0), "EACCES"),
        ("socket", (2, 3, 1), "EACCES"),
        ("socket", (2, 1, 262), "EACCES"),
        ("socket", (1, 1, 0), "EACCES"),
        ("socket", (16, 3, 0), "EACCES"),
        ("socketpair", (1, 1, 0), "allowed"),
        ("socketpair", (1, 0o2000002, 0), "EACCES"),
        ("sendto", (3, 0, 0, 0x4000), "allowed"),
        ("sendto", (3, 0, 0, 0x20000000), "EPERM"),
        ("sendmsg", (3, 0, 0x4000), "allowed"),
        ("sendmsg", (3, 0, 0x20000000), "EPERM"),
        ("sendmmsg", (3, 0, 0x20000000, 0x4000), "allowed"),
        ("sendmmsg", (3, 0, 1, 0x20000000), "EPERM"),
        ("listen", (3, 1), "EACCES"),
        ("clone", (17,), "allowed"),
        ("clone", (0x10000000 | 17,), "EPERM"),
        ("clone3", (0,), "ENOSYS"),
        ("unshare", (0x400,), "allowed"),
        ("unshare", (0x20000,), "EPERM"),
        ("openat", (3, 0, 0o102, 0o644), "allowed"),
        ("openat", (3, 0, 0o102, 0o4755), "EPERM"),
        ("openat", (3, 0, 0, 0o4755), "allowed"),
        ("openat", (3, 0, 0o1000, 0), "EPERM"),
        ("openat", (3, 0, 0o1001, 0), "allowed"),
        ("fchmodat", (3, 0, 0o755), "asked"),
        ("fchmodat", (3, 0, 0o2755), "EPERM"),
        ("utimensat", (3, 0, 0, 0), "asked"),
        ("personality", (0xFFFFFFFF,), "allowed"),
        ("personality", (0x40000,), "EPERM"),
        ("prlimit64", (0, 4), "allowed"),
        ("prlimit64", (77, 4), "EPERM"),
        ("ioctl", (0, 0x5401), "allowed"),
        ("ioctl", (0, 0x5412), "EPERM"),
        ("bind", (3,), "EACCES"),
    ],
)
def test_the_filter_answers(
    machine: str, name: str, arguments: tuple[int, ...], answer: str
) -> None:
    assert said(machine, name, *arguments) == answer


@pytest.mark.parametrize("machine", MACHINES)
@settings(max_examples=examples(10))
@given(arguments=st.lists(st.integers(0, 2**64 - 1), min_size=6, max_size=6))
def test_what_is_denied_is_denied_with_any_arguments(
    machine: str, arguments: list[int]
) -> None:
    for name in DENIED:
        if ARCHITECTURES[machine].numbers[name] >= 0:
            assert said(machine, name, *arguments) in {"EPERM", "ENOSYS"}
    assert said(machine, "socket", *arguments, tcp=False) == "EACCES"


@pytest.mark.parametrize("machine", MACHINES)
@given(number=st.integers(0, 2**31 - 1), audit=st.integers(0, 2**32 - 1))
def test_another_table_or_a_newer_call_is_never_allowed(
    machine: str, number: int, audit: int
) -> None:
    found = ARCHITECTURES[machine]
    body = made(machine, tcp=True, may_truncate=True, is_brokered=False)
    if audit != found.audit:
        assert verdict(body, audit, number) == KILL
    if number > HIGHEST_CALL:
        assert verdict(body, found.audit, number) != ALLOW


def test_only_modes_and_times_are_asked_about() -> None:
    numbers = ARCHITECTURES["x86_64"].numbers
    body = program("x86_64", tcp=True, may_truncate=True, is_brokered=True)
    audit = ARCHITECTURES["x86_64"].audit
    asked = {n for n, at in numbers.items() if verdict(body, audit, at) == NOTIFY}
    assert asked == BROKERED


def test_an_old_kernel_is_not_asked_for_what_it_does_not_know() -> None:
    known = {abi: landlock.known(landlock.FILES_SINCE, abi) for abi in range(1, 11)}
    assert known[1] == 0x1FFF
    assert known[2] & landlock.REFER
    assert not known[2] & landlock.TRUNCATE
    assert known[7] == 0xFFFF
    assert known[9] == 0x1FFFF
    assert landlock.known(landlock.PORTS_SINCE, 3) == 0
    assert landlock.known(landlock.PORTS_SINCE, 4) == 3
    assert landlock.known(landlock.SCOPES_SINCE, 5) == 0
    assert filter_for(Means(2, is_filtered=True), has_network=False) != filter_for(
        Means(3, is_filtered=True), has_network=False
    ), "below ABI 3 the filter stops truncation"


def test_ports_are_refused_where_they_cannot_be_limited() -> None:
    with pytest.raises(
        SandboxError, match=r"cannot limit a program to some ports \(Landlock ABI 3"
    ):
        refuse_ports(Means(3, is_filtered=True))


@given(pieces=st.lists(st.binary(max_size=40), max_size=30), most=st.integers(0, 60))
def test_beginning_and_end_are_kept(pieces: list[bytes], most: int) -> None:
    capture = Capture(most)
    for piece in pieces:
        capture.add(piece)
    whole = b"".join(pieces)
    if len(whole) <= most:
        assert capture.text() == whole
        return
    first, last = most - most // 2, most // 2
    assert capture.missing == len(whole) - most
    assert capture.text().startswith(whole[:first] + b"\n[... ")
    assert capture.text().endswith(b" ...]\n" + whole[len(whole) - last :])


@given(own=st.dictionaries(st.text(min_size=1), st.text()))
def test_no_variable_slips_through(own: dict[str, str]) -> None:
    allowed = "HOME LANG LANGUAGE LC_ALL LC_CTYPE PATH RES_OPTIONS TERM TMPDIR TZ GIVEN"
    given_env = {"GIVEN": "1", "CLAUDECODE": "1"}
    chosen = scrubbed({**own, "CLAUDECODE": "1"}, given_env, "/h", "/t")
    assert set(chosen) <= set(allowed.split())
    assert chosen["GIVEN"] == "1"


def tree(folder: Path) -> Path:
    for name in ("state/db", "state/workspace/anna/x", "open/a/b", "open/c"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    return folder


def test_beside_what_is_hidden_all_is_given(tmp_path: Path) -> None:
    tree(tmp_path)
    land = Territory(python=())
    wanted = Confinement(
        readable=(tmp_path / "open",), hidden=(tmp_path / "open" / "a" / "later",)
    )
    found = {each.path for each in land.grants(wanted)}
    mine = {path for path in found if path.startswith(str(tmp_path))}
    assert mine == {str(tmp_path / "open/a/b"), str(tmp_path / "open/c")}


@pytest.mark.parametrize(
    "readable", ["state", "state/db", ".", "state/workspace/../db", "link"]
)
def test_the_database_is_never_given(tmp_path: Path, readable: str) -> None:
    tree(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path / "state" / "db")
    land = Territory(kept=(tmp_path / "state",), python=())
    place = (tmp_path / readable,)
    for wanted in (
        Confinement(readable=place),
        Confinement(writable=place),
        Confinement(removable=place),
    ):
        try:
            found = {each.path for each in land.grants(wanted)}
        except SandboxError:
            continue
        assert not any(
            str(tmp_path / "state" / "db").startswith(path) for path in found
        )


def app(folder: Path, workspace: str) -> AppConfig:
    return AppConfig(
        store=StoreConfig(path=str(folder / "state" / "db")),
        workspace=WorkspaceConfig(path=str(folder / workspace)),
    )


def test_a_workspace_may_lie_beside_the_database(tmp_path: Path) -> None:
    tree(tmp_path)
    land = territory(app(tmp_path, "state/workspace"), [tmp_path / "open" / "c"])
    own = tmp_path / "state" / "workspace" / "anna"
    given_paths = {each.path for each in land.grants(Confinement(writable=(own,)))}
    assert str(own) in given_paths
    with pytest.raises(SandboxError, match="which no program may reach"):
        land.grants(Confinement(writable=(tmp_path / "state",)))


@pytest.mark.parametrize("workspace", ["state", "."])
def test_a_workspace_around_the_database_is_refused(
    tmp_path: Path, workspace: str
) -> None:
    with pytest.raises(SandboxError, match="put one of the two elsewhere"):
        territory(app(tree(tmp_path), workspace), [])


@pytest.mark.parametrize("path", ["missing", "relative"])
def test_a_path_that_is_not_there_is_an_error(tmp_path: Path, path: str) -> None:
    place = tmp_path / path
    wanted = place.relative_to(tmp_path) if path == "relative" else place
    with pytest.raises(SandboxError, match=path):
        Territory().grants(Confinement(readable=(wanted,)))


def test_what_is_not_in_force_is_said_with_what_to_do() -> None:
    features = dict.fromkeys(FEATURES, True) | {"signals": False, "tcp_ports": False}
    assert shortcomings(features) == [
        "tcp_ports is not in force; needs Landlock ABI 4 (Linux 6.7)",
        "signals is not in force; needs Landlock ABI 6 (Linux 6.12), or bubblewrap",
    ]


def test_the_gauge_shows_what_is_in_force_and_what_is_not() -> None:
    metrics = Metrics()
    features = dict.fromkeys(FEATURES, True) | {"signals": False}
    figures = SandboxFigures(metrics)
    figures.show(Standing(kind="bubblewrap", features=dict.fromkeys(FEATURES, True)))
    figures.show(Standing(kind="landlock", abi=5, features=features))
    text = metrics.render().decode()
    name = "callboard_sandbox_in_force"
    assert f'{name}{{feature="signals",kind="landlock"}} 0.0' in text
    assert f'{name}{{feature="files",kind="landlock"}} 1.0' in text
    assert f'{name}{{feature="files",kind="bubblewrap"}} 0.0' in text


async def test_without_a_sandbox_nothing_is_claimed() -> None:
    sandbox = await open_sandbox(SandboxConfig(mode="none"), Territory())
    assert sandbox.standing.kind == "none"
    assert not any(sandbox.standing.features.values())


def test_a_reason_for_no_sandbox_is_told_once() -> None:
    told = refusal(["landlock fails", "landlock fails", "bubblewrap fails"])
    assert told.count("landlock fails") == 1
    assert "bubblewrap fails" in told


BARE = Machine("linux", "x86_64", abi=0, bubblewrap="")


@pytest.mark.parametrize(
    ("machine", "reason"),
    [
        (BARE, "bubblewrap is not installed: apt install bubblewrap"),
        (BARE, "this kernel has no Landlock: Linux 5.13 or newer"),
        (replace(BARE, bubblewrap="/bin/false"), "bubblewrap does not work here: the"),
        (replace(BARE, processor="riscv64"), "no sandbox for linux on riscv64"),
        (replace(BARE, system="darwin"), "no sandbox for darwin on x86_64"),
    ],
)
async def test_without_a_sandbox_nothing_is_run(machine: Machine, reason: str) -> None:
    with pytest.raises(SandboxError, match=r"required = false") as caught:
        await open_sandbox(SandboxConfig(), Territory(), machine)
    assert reason in str(caught.value)


async def test_who_does_not_want_one_goes_without() -> None:
    sandbox = await open_sandbox(SandboxConfig(required=False), Territory(), BARE)
    assert sandbox.standing.kind == "none"
    assert len(sandbox.standing.missing) == 2


def test_a_mode_tries_only_what_it_names() -> None:
    full = Machine("linux", "x86_64", abi=7, bubblewrap="/usr/bin/bwrap")
    for mode, kinds in {
        "none": [],
        "landlock": ["landlock", "landlock"],
        "bubblewrap": ["bubblewrap"],
        "auto": ["bubblewrap", "landlock", "landlock"],
    }.items():
        assert [kind for kind, _ in candidates(mode, full, [])] == kinds
