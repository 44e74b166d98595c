"""A hook in Python: found by its entry point, contained whatever it does."""

from __future__ import annotations

import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trio

from actors.hooks.book import AskHook, HookSubject
from actors.hooks.chain import Verdict
from connectors.hooks.hook import HookError
from connectors.hooks.runner import FunctionConnection, load, loaded

ABOUT = HookSubject(id="m1", correlation_id="m1", connector="web", chat="room")
ASKED = AskHook(event="message_received", about=ABOUT, text="hello")

MODULE = """
def shout(event, text, about):
    return text.upper() + " " + about["chat"]

async def calm(event, text, about):
    return None

constant = 7
"""
POINTS = """[callboard.hooks]
shout = callboard_example_hooks:shout
calm = callboard_example_hooks:calm
constant = callboard_example_hooks:constant
broken = callboard_example_missing:shout
"""


@contextmanager
def installed(folder: Path) -> Generator[None]:
    """Have a package installed for as long as the block."""
    (folder / "callboard_example_hooks.py").write_text(MODULE)
    info = folder / "callboard_example_hooks-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: callboard-example-hooks\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(POINTS)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop("callboard_example_hooks", None)


async def test_an_entry_point_is_asked(tmp_path: Path) -> None:
    with installed(tmp_path):
        async with loaded("shout", 8) as hook:
            assert await hook.ask(ASKED) == Verdict("change", "HELLO room")
        async with loaded("calm", 8) as hook:
            assert await hook.ask(ASKED) == Verdict()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nobody", "there are: broken, calm, constant, shout"),
        ("broken", "No module named"),
        ("constant", "cannot be called"),
    ],
)
def test_what_cannot_be_found_is_told(name: str, words: str, tmp_path: Path) -> None:
    with installed(tmp_path), pytest.raises(HookError, match=words) as caught:
        load(name)
    assert caught.value.trouble == "down"


@pytest.mark.parametrize(
    ("gives", "words"),
    [
        (7, "it gave int"),
        (Verdict("destroy"), "is none"),  # type: ignore[arg-type]
        (Verdict("change", 7), "is none"),  # type: ignore[arg-type]
    ],
)
async def test_what_is_no_verdict_is_told(gives: object, words: str) -> None:
    hook = FunctionConnection(lambda *_: gives, 8)
    with pytest.raises(HookError, match=words) as caught:
        await hook.ask(ASKED)
    assert caught.value.trouble == "wrong"


async def test_what_it_raises_is_told() -> None:
    def breaks(*_: object) -> None:
        raise LookupError("the word list is missing")

    with pytest.raises(HookError, match="LookupError: the word list"):
        await FunctionConnection(breaks, 8).ask(ASKED)


class MuteError(Exception):
    """Something that cannot even be told."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize("error", [SystemExit(3), GeneratorExit(), MuteError()])
async def test_what_would_end_a_program_ends_a_hook_only(error: BaseException) -> None:
    def gives(*_: object) -> None:
        raise error

    async def gives_later(*_: object) -> None:
        await trio.lowlevel.checkpoint()
        raise error

    for each in (gives, gives_later):
        with pytest.raises(HookError, match=type(error).__name__):
            await FunctionConnection(each, 8).ask(ASKED)


def test_a_package_that_exits_when_it_is_imported_is_told(tmp_path: Path) -> None:
    with installed(tmp_path):
        (tmp_path / "callboard_example_hooks.py").write_text("import sys; sys.exit(2)")
        with pytest.raises(HookError, match="SystemExit: 2") as caught:
            load("shout")
    assert caught.value.trouble == "down"


async def test_threads_that_hang_are_few_and_block_nobody_else() -> None:
    over = threading.Event()
    hook = FunctionConnection(lambda *_: over.wait(), 2)
    try:
        for _ in range(2):
            with trio.move_on_after(0.05) as scope:
                await hook.ask(ASKED)
            assert scope.cancelled_caught
        with pytest.raises(HookError, match="2 calls of it hang") as caught:
            await hook.ask(ASKED)
        assert caught.value.trouble == "busy"
    finally:
        over.set()
