"""Names, shared messages, moves, members and signs, whatever comes."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from hypothesis import given, strategies as st

from connectors.chat.accounts import ConnectorShelf
from connectors.chat.markup.dialect import utf16
from connectors.chat.requests import (
    BusyError,
    LostError,
    PlatformError,
    RefusedError,
    ShutOutError,
)
from connectors.chat.telegram.account import ConflictError, MovedError, error_of
from connectors.chat.telegram.events import (
    ChatName,
    MessageName,
    Parameters,
    TelegramMessage,
    read_chat,
    read_message,
)
from connectors.chat.telegram.listener import leased
from connectors.chat.telegram.markup import MOST, cut, message, reaction
from connectors.chat.telegram.senders import MessageNumbers, StoredTelegramBookmarks
from tests.fakes.store.in_memory import MemoryStore
from tests.support.chat.telegram_bed import BASIC, delivery

numbers = st.integers(-(10**15), 10**15)
agents = st.sampled_from(["", "anna", "b-2"])


@given(numbers, agents, st.integers(0, 10**15))
def test_names_are_read_as_they_were_written(chat: int, agent: str, at: int) -> None:
    where, which = ChatName(chat, agent), MessageName(chat, at, agent)
    assert read_chat(where.text) == where
    assert read_message(which.text) == which


@given(st.text(max_size=30))
def test_anything_is_a_name_or_none(text: str) -> None:
    for name in (read_chat(text), read_message(text)):
        assert name is None or name.text.lstrip("-0") == text.lstrip("-0")


def spoken(number: int, text: str) -> TelegramMessage:
    return TelegramMessage(
        chat=BASIC,
        message_id=number,
        sender_id=1,
        sender_name="Zoe",
        username="",
        is_bot=False,
        is_direct=False,
        is_basic=True,
        text=text,
        sent_at=9,
    )


@given(st.lists(st.sampled_from("ab"), max_size=12), st.data())
def test_two_bots_name_messages_alike_in_whatever_order_they_hear(
    texts: list[str], data: st.DataObject
) -> None:
    numbers = MessageNumbers()
    named: dict[str, list[str]] = {"anna": [], "ben": []}
    turns = ["anna"] * len(texts) + ["ben"] * len(texts)
    begins = {"anna": 10, "ben": 500}
    for agent in data.draw(st.permutations(turns)):
        place = len(named[agent])
        heard = spoken(begins[agent] + place, texts[place])
        name = numbers.name(heard, agent)
        assert numbers.name(heard, agent) == name, "told again, it is the same"
        assert numbers.number(name, agent) == begins[agent] + place
        named[agent].append(name.text)
    assert named["anna"] == named["ben"]
    assert len({*named["anna"]}) == len(texts)
    assert all(read_message(each) is not None for each in named["anna"])


def test_what_is_forgotten_has_no_number() -> None:
    numbers = MessageNumbers(most=2)
    first = numbers.name(spoken(1, "a"), "anna")
    for number in (2, 3):
        numbers.name(spoken(number, str(number)), "anna")
    assert numbers.number(first, "anna") == 0
    assert numbers.number(first, "ben") == 0
    assert numbers.number(MessageName(BASIC, 5, "ben"), "anna") == 0
    assert numbers.number(MessageName(BASIC, 5), "anna") == 5


@pytest.mark.parametrize(
    ("status", "parameters", "kind", "wait"),
    [
        (429, Parameters(retry_after=3), BusyError, 3.0),
        (429, Parameters(retry_after=10**9), BusyError, 3600.0),
        (429, Parameters(retry_after=-5), BusyError, None),
        (409, Parameters(), ConflictError, None),
        (401, Parameters(), ShutOutError, None),
        (403, Parameters(), RefusedError, None),
        (400, Parameters(migrate_to_chat_id=-5), MovedError, None),
        (404, Parameters(), RefusedError, None),
        (500, Parameters(), LostError, None),
        (302, Parameters(), LostError, None),
    ],
)
def test_each_status_means_one_thing(
    status: int, parameters: Parameters, kind: type[PlatformError], wait: float | None
) -> None:
    error = error_of(status, "no \n no", parameters)
    assert type(error) is kind
    assert getattr(error, "retry_after", None) == wait
    assert "no no" in str(error)
    if status == 404:
        unknown = error_of(status, "", parameters, is_known=False)
        assert type(unknown) is ShutOutError


@given(st.text(alphabet="a\U0001f98a", max_size=5_000))
def test_a_text_is_cut_to_what_a_message_takes(text: str) -> None:
    said = cut(text)
    assert utf16(said) <= MOST
    assert said == text or said.endswith("…")


def test_signs_are_those_that_telegram_has() -> None:
    assert reaction("👀") == [{"type": "emoji", "emoji": "👀"}]
    assert reaction("✅") == [{"type": "emoji", "emoji": "👌"}]
    assert reaction("") == []


def test_a_command_in_an_answer_makes_no_buttons() -> None:
    said = message(delivery("/approve 3F or /deny 3F"), "x")
    assert "reply_markup" not in said
    other = message(delivery("/approve 3F or /deny 4F", kind="notice"), "x")
    assert "reply_markup" not in other


def test_one_program_of_a_machine_has_a_bot(tmp_path: Path) -> None:
    with leased(tmp_path, 7):
        with leased(tmp_path, 8), pytest.raises(ConflictError, match="bot 7"):  # noqa: SIM117
            with leased(tmp_path, 7):
                pass
        with leased(None, 7), leased(tmp_path / "nowhere", 7):
            pass
    with leased(tmp_path, 7):
        pass


class Clock:
    """Wall time that a test sets."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def wall(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now


async def test_a_place_counts_for_a_day_and_a_move_for_ever() -> None:
    clock, store = Clock(), MemoryStore()
    marks = StoredTelegramBookmarks(ConnectorShelf(store, clock, "telegram"))
    other = StoredTelegramBookmarks(ConnectorShelf(store, clock, "other"))
    assert await marks.read(7) == 0
    await marks.write(7, 55)
    await marks.move(BASIC, -100)
    await trio.lowlevel.checkpoint()
    assert [await each.read(7) for each in (marks, other)] == [55, 0]
    assert await marks.moved(-100) == BASIC
    clock.now += 24 * 3600
    assert await marks.read(7) == 0
    assert await marks.moved(-100) == BASIC
    assert await other.moved(-100) == 0
