"""Proves that a message is stored if it can be, and that its sender hears if not."""

from __future__ import annotations

import pytest
import trio
from msgspec import structs
from trio.testing import MockClock

from actors.messages.inbound import Address, Attachment, Inbound, Quoted
from connectors.chat.inbound import Ended, Submission, Trouble
from runtime.errors import CorruptError, FencedError, MisuseError, StoreUnavailableError
from runtime.telemetry.logs import EventLog
from tests.fakes.chat.ingress import FakeIngress

CAT = Attachment("image", "cat.png", "image/png", content=b"cat")
SAID = Inbound(
    id="m1",
    platform="slack",
    platform_id="p1",
    address=Address("slack", "C1"),
    sender_id="z",
    sender_name="Zoe",
    text="look",
    received_at=1.0,
    is_direct=False,
)


class Narrow(FakeIngress):
    """Has room for words only."""

    def __init__(self) -> None:
        super().__init__()
        self.why: list[Exception] = []
        """Raised for one message with files after the other; then always the last."""

    async def accept(self, inbound: Inbound) -> bool:
        """Keep a message without files."""
        if inbound.attachments and self.why:
            raise self.why.pop(0) if len(self.why) > 1 else self.why[0]
        return await super().accept(inbound)


class Porch:
    """An entrance, and what is said and counted there."""

    def __init__(self) -> None:
        self.ended: list[Ended] = []
        self.told: list[tuple[str, Trouble]] = []
        self.entrance = Submission(EventLog("test"), self.ended.append, self._tell)

    async def _tell(self, _: Inbound, words: str, trouble: Trouble) -> None:
        await trio.lowlevel.checkpoint()
        self.told.append((words, trouble))


async def with_cat(inbound: Inbound) -> Inbound:
    """Fetch a picture."""
    await trio.lowlevel.checkpoint()
    return structs.replace(inbound, attachments=(CAT,))


async def test_what_cannot_be_stored_with_its_files_is_stored_without() -> None:
    porch, ingress = Porch(), Narrow()
    ingress.why = [MisuseError("a commit of 99 bytes is more than the store takes")]
    await porch.entrance.submit(SAID, ingress, with_cat)
    (inbound,) = ingress.accepted
    note = "[image cat.png was not fetched: it could not be stored]"
    assert (inbound.text, inbound.attachments) == (f"look\n{note}", ())
    assert (porch.ended, porch.told) == (["handed_in"], [])


async def test_a_busy_store_is_asked_again_with_the_files(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    porch, ingress = Porch(), Narrow()
    error = StoreUnavailableError("the store is overloaded")
    ingress.why = [error, error, MisuseError("too large")]
    await porch.entrance.submit(SAID, ingress, with_cat)
    assert len(ingress.accepted) == 1
    assert porch.ended == ["handed_in"]


@pytest.mark.parametrize(
    ("error", "is_told"),
    [(StoreUnavailableError("away"), True), (FencedError("another node"), False)],
)
async def test_only_what_this_process_tries_again_is_said_to_wait(
    error: StoreUnavailableError, autojump_clock: MockClock, *, is_told: bool
) -> None:
    del autojump_clock
    porch, ingress = Porch(), Narrow()
    ingress.why = [error, error, MisuseError("too large")]
    said = structs.replace(SAID, is_direct=True)
    await porch.entrance.submit(said, ingress, with_cat)
    waits = "the message cannot be stored now. It waits here, and is tried again"
    told = [(f"⚠️ {waits} by itself.", "waits")] if is_told else []
    assert (porch.ended, porch.told) == (["handed_in"], told)


@pytest.mark.parametrize(
    ("said", "is_told"),
    [
        (structs.replace(SAID, is_direct=True), True),
        (structs.replace(SAID, mentions=("anna",)), True),
        (structs.replace(SAID, agent="anna"), True),
        (structs.replace(SAID, quoted=Quoted("hi", agent="anna")), True),
        (structs.replace(SAID, quoted=Quoted("hi", "Sam")), False),
        (SAID, False),
    ],
)
async def test_who_speaks_to_an_agent_is_told_what_was_lost(
    said: Inbound, *, is_told: bool
) -> None:
    porch, ingress = Porch(), FakeIngress()
    ingress.error = CorruptError("the database is damaged")
    await porch.entrance.submit(said, ingress, with_cat)
    assert porch.ended == ["lost"]
    lost = ("⚠️ this message could not be taken", "lost")
    assert porch.told == ([lost] if is_told else [])
