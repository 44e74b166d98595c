"""What a runner needs of a hook's code, whether it is a program or a function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import trio

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from actors.hooks.book import AskHook, TellHook
    from actors.hooks.chain import Verdict


class HookEnd:
    """Why a hook's code is not to be spoken with any more; the first reason counts."""

    def __init__(self) -> None:
        self.reason = ""
        self._come = trio.Event()

    def come(self, reason: str) -> None:
        """End it."""
        if not self._come.is_set():
            self.reason = reason
            self._come.set()

    async def wait(self) -> None:
        """Wait for the end."""
        await self._come.wait()


class HookConnection(Protocol):
    """A hook's code that runs."""

    ending: HookEnd

    async def ask(self, asked: AskHook) -> Verdict:
        """Put one question to it; may be cancelled.

        Raises:
            connectors.hooks.messages.HookError: there is no verdict.
        """
        ...

    async def tell(self, told: TellHook) -> None:
        """Tell it of a finished turn; may be cancelled.

        Raises:
            connectors.hooks.messages.HookError: it failed.
        """
        ...


class Connect(Protocol):
    """Starts a hook's code."""

    def __call__(self) -> AbstractAsyncContextManager[HookConnection]:
        """Run it until the block ends.

        Raises:
            connectors.hooks.messages.HookError: it cannot be started.
        """
        ...
