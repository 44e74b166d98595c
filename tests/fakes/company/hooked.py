"""Hooks of a company in memory: what each says is a function's business."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trio

from actors.hooks.book import AskHook, HookBook, TellHook
from actors.hooks.chain import Verdict
from connectors.config.hooks import HookConfig
from connectors.hooks.hook import HookFigures
from connectors.hooks.tree import HookSurroundings, book_of, branch
from connectors.mcp.connection import ServerEnd
from runtime.supervision.child import ChildSpec
from tests.fakes.tools.sandbox import FakeSandbox

if TYPE_CHECKING:
    from tests.fakes.company.company import Cast

Talk = Callable[[AskHook], Awaitable[Verdict]]


@dataclass
class FakeHook:
    """A hook, and all that it was asked and told."""

    talk: Talk
    asked: list[AskHook] = field(default_factory=list["AskHook"])
    told: list[TellHook] = field(default_factory=list["TellHook"])
    runs: int = 0
    start_after: float = 0.0
    ending: ServerEnd = field(default_factory=ServerEnd)

    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[FakeHook]:
        self.runs += 1
        self.ending = ServerEnd()
        await trio.sleep(self.start_after)
        yield self

    async def ask(self, asked: AskHook) -> Verdict:
        self.asked.append(asked)
        return await self.talk(asked)

    async def tell(self, told: TellHook) -> None:
        self.told.append(told)

    @property
    def texts(self) -> list[str]:
        return [each.text for each in self.asked]


@dataclass
class Hooks:
    """All hooks of a cast."""

    book: HookBook = HookBook()  # noqa: RUF009  frozen
    branches: tuple[ChildSpec, ...] = ()
    figures: HookFigures | None = None


async def passes(_asked: AskHook) -> Verdict:
    return Verdict()


async def shouts(asked: AskHook) -> Verdict:
    return Verdict("change", asked.text.upper())


async def refuses(_asked: AskHook) -> Verdict:
    return Verdict("cancel", reason="not today")


def hook_config(*events: Any, **settings: Any) -> HookConfig:
    return HookConfig(events=events, python="fake", **settings)


def hooked(
    cast: Cast, talk: Talk = passes, *events: Any, name: str = "h", **settings: Any
) -> FakeHook:
    """Give a cast one more hook.

    Args:
        cast: gets it, behind those it has.
        talk: what it says.
        events: what it is asked about; none: messages that came in.
        name: of the hook.
        settings: further ones.
    """
    hook = FakeHook(talk)
    config = hook_config(*(events or ("message_received",)), **settings)
    hooks = cast.hooks
    hooks.figures = hooks.figures or HookFigures(cast.metrics)
    ground = HookSurroundings(
        FakeSandbox(), Path(), hooks.figures, cast.store, cast.clock
    )
    made = branch(name, config, hook.connect, ground)
    hooks.branches = (*hooks.branches, made)
    hooks.book = HookBook((*hooks.book.specs, *book_of({name: config}).specs))
    return hook
