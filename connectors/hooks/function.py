"""A hook that is Python of an installed package, found by its entry point.

What the entry point names is called with the event, the text and a mapping of what
there is to know; it gives None (continue), a text (change), or a `Verdict`. A coroutine
function runs on the kernel's thread and must not block it; anything else runs in a
thread of its own, where it may. It runs in this process: it is trusted like Callboard.
"""

from __future__ import annotations

import inspect
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, cast

import msgspec
import trio

from actors.hooks.chain import Verdict
from actors.rules.text.cleaning import one_line
from connectors.hooks.messages import HookError
from connectors.hooks.runner import HookEnd

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from actors.hooks.book import AskHook, TellHook

GROUP = "callboard.hooks"

LONGEST_ERROR = 300

CONTAINED = (Exception, SystemExit, GeneratorExit)
"""What a hook may raise without ending the company: whoever writes `sys.exit()` in one
means the hook. An interrupt is not its own."""


class FunctionConnection:
    """A hook's function.

    Args:
        function: what the entry point names.
        most: threads at once. One that hangs keeps its own until it ends: nobody can
            end a thread.
    """

    def __init__(self, function: Callable[..., object], most: int) -> None:
        self.ending = HookEnd()
        self._function = function
        self._most = most
        self._threads: set[object] = set()

    async def ask(self, asked: AskHook) -> Verdict:
        """Call it; see the port."""
        about = msgspec.to_builtins(asked.about)
        return as_verdict(await self._call(asked.event, asked.text, about))

    async def tell(self, told: TellHook) -> None:
        """Call it, and take no notice of what it gives; see the port."""
        about = {
            **msgspec.to_builtins(told.about),
            "ended": msgspec.to_builtins(told.ended),
        }
        await self._call("turn_finished", told.text, about)

    async def _call(self, *arguments: object) -> object:
        is_async = inspect.iscoroutinefunction(self._function)
        if not is_async and len(self._threads) >= self._most:
            raise HookError(f"{len(self._threads)} calls of it hang already", "busy")
        try:
            if is_async:
                return await cast("Awaitable[object]", self._function(*arguments))
            return await trio.to_thread.run_sync(
                partial(self._counted, *arguments),
                abandon_on_cancel=True,
                limiter=trio.CapacityLimiter(1),
            )
        except CONTAINED as error:
            text = one_line(f"it raised {in_words(error)}", LONGEST_ERROR)
            raise HookError(text, "failed") from error

    def _counted(self, *arguments: object) -> object:
        call = object()
        self._threads.add(call)
        try:
            return self._function(*arguments)
        finally:
            self._threads.discard(call)


def in_words(error: BaseException) -> str:
    """Say what a hook raised; what it says of itself may fail, too."""
    name = type(error).__name__
    try:
        return f"{name}: {error}"
    except CONTAINED:
        return name


def as_verdict(given: object) -> Verdict:
    """Take what a function gave for a verdict.

    Raises:
        HookError: it is none.
    """
    if given is None:
        return Verdict()
    found = Verdict("change", given) if isinstance(given, str) else given
    if not isinstance(found, Verdict):
        kind = type(given).__name__
        raise HookError(
            f"it gave {kind}; a hook gives None, a text or a Verdict", "wrong"
        )
    try:
        # A Struct that was made by hand may hold anything.
        found = msgspec.convert(msgspec.to_builtins(found), Verdict)
    except (msgspec.ValidationError, TypeError) as error:
        raise HookError(f"its verdict is none: {error}", "wrong") from error
    return found


def load(name: str) -> Callable[..., object]:
    """Find a function by its entry point, and import it.

    Raises:
        HookError: there is none, or it cannot be imported.
    """
    found = tuple(entry_points(group=GROUP, name=name))
    if not found:
        known = ", ".join(sorted(each.name for each in entry_points(group=GROUP)))
        raise HookError(
            f"no installed package has an entry point {name!r} in the group {GROUP};"
            f" there are: {known or 'none'}",
            "down",
        )
    try:
        function: object = found[0].load()
    except CONTAINED as error:
        text = f"{found[0].value} cannot be imported: {in_words(error)}"
        raise HookError(one_line(text, LONGEST_ERROR), "down") from error
    if not callable(function):
        raise HookError(f"{found[0].value} cannot be called", "down")
    return function


@asynccontextmanager
async def loaded(name: str, most: int) -> AsyncGenerator[FunctionConnection]:
    """Import a hook's function.

    Args:
        name: of its entry point.
        most: calls at once.

    Raises:
        HookError: as `load`.
    """
    # Why in a thread: what it imports may take seconds.
    yield FunctionConnection(await trio.to_thread.run_sync(load, name), most)
