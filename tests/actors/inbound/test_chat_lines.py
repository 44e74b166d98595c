"""Proves that nothing is lost, doubled or overtaken in its chat: new words go first."""

from __future__ import annotations

from collections import defaultdict
from itertools import count

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from actors.inbound.chat_lines import ChatLines, Place, State
from actors.journal.unsettled import UnroutedMessage
from actors.messages.inbound import Address, Inbound
from actors.protocol import StopDelegated
from runtime.store.rows import StoredMessage
from tests.fakes.actors.neighbours import words

chats = st.sampled_from("abcd")
WAITS: tuple[State, ...] = ("hooks", "finding", "models", "copying")


def inbound(number: int, chat: str) -> Inbound:
    return words(number=number, address=Address("fake", chat))


def row(number: int, chat: str, body: bytes = b"") -> StoredMessage:
    message = inbound(number, chat)
    return StoredMessage(
        number=number,
        id=message.id,
        connector="fake",
        platform_id=message.platform_id,
        part=0,
        epoch=0,
        stream=chat,
        body=body or msgspec.json.encode(message),
        at=1.0,
        priority=5,
        state="accepted",
        attempts=0,
        started_at=0.0,
        due_at=0.0,
        reason="",
        settled_at=0.0,
    )


def new(number: int, chat: str) -> UnroutedMessage:
    return UnroutedMessage(inbound(number, chat), number, arrived_at=7.0)


def filled(chats_of_rows: str) -> ChatLines:
    lines = ChatLines()
    lines.refill((chat, row(n, chat)) for n, chat in enumerate(chats_of_rows))
    return lines


def done(lines: ChatLines, places: list[Place]) -> list[str]:
    """Take places out; name them by their chats and numbers."""
    found = [f"{each.chat}{each.id.removeprefix('m')}" for each in places]
    for each in places:
        lines.remove(each)
    return found


def test_the_oldest_goes_first() -> None:
    lines = filled("abac")
    assert done(lines, list(lines.take(3))) == ["a0", "b1", "a2"]
    assert ("a" in lines, "c" in lines) == (False, True)
    assert done(lines, list(lines.take(3))) == ["c3"]
    assert not lines.has_left()


def test_where_somebody_writes_that_chat_goes_first() -> None:
    lines = filled("abacc")
    assert done(lines, list(lines.hurry("c", 9))) == ["c3", "c4"]
    assert done(lines, list(lines.take(9))) == ["a0", "b1", "a2"]


def test_of_a_long_chat_only_so_many_move_at_once() -> None:
    lines = filled("abbb")
    lines.add("b", new(9, "b"))
    assert done(lines, list(lines.hurry("b", 2))) == ["b1", "b2"]
    assert list(lines.hurry("b", 2)) == []
    assert done(lines, list(lines.take(1))) == ["b3"]
    lines.refill([("a", row(0, "a")), ("b", row(9, "b"))])
    assert done(lines, list(lines.take(9))) == ["b9", "a0"]


def test_what_moves_is_not_found_again_and_keeps_its_place() -> None:
    lines = filled("aa")
    first, second = lines.take(2)
    lines.wait(first, "hooks")
    lines.refill([("a", row(0, "a")), ("a", row(1, "a")), ("a", row(2, "a"))])
    assert lines.moving("a") == (first, second)
    assert first.state == "hooks"
    assert done(lines, list(lines.take(9))) == ["a2"]
    assert lines.add("a", new(1, "a")) is None
    assert lines.moving("a") == (first, second)


def test_a_message_found_before_it_arrived_is_known_to_have_arrived() -> None:
    lines = filled("a")
    assert lines.add("a", new(0, "a")) is None
    (place,) = lines.take(9)
    assert place.message is not None
    assert place.message.arrived_at == 7.0


def test_what_cannot_be_read_holds_up_nobody() -> None:
    lines = ChatLines()
    lines.refill([("a", row(0, "a", b"[")), ("a", row(1, "a"))])
    assert done(lines, list(lines.take(2))) == ["a1"]
    assert "a" not in lines


def test_a_stop_stays_behind_the_message_that_it_followed() -> None:
    lines = filled("aa")
    lines.add("a", new(2, "a"), is_late=True)
    stop = StopDelegated(inbound(3, "a"), "anna")
    lines.add("a", stop)
    lines.add("a", new(4, "a"), is_late=True)
    assert set(lines.late) == {"a"}
    assert [each.id for each in lines.take(9)] == ["m0", "m1"]
    lines.refill([("a", row(2, "a")), ("a", row(4, "a"))])
    rest = list(lines.take(9))
    assert [each.item is stop for each in rest] == [False, True, False]
    assert not lines.late


class Entry(msgspec.Struct, eq=False):
    chat: str
    id: str
    """Empty: a stop."""

    state: str


class Crowd(RuleBasedStateMachine):
    """Compares the lines with one list in the order of arrival."""

    def __init__(self) -> None:
        super().__init__()
        self.lines = ChatLines()
        self.all: list[Entry] = []
        self.stored: list[tuple[str, int]] = []
        self.first: list[str] = []
        self.numbers = count()

    def of(self, chat: str, *states: str) -> list[Entry]:
        return [x for x in self.all if x.chat == chat and x.state in states]

    def left(self, chat: str) -> list[Entry]:
        return self.of(chat, "late", "left")

    def ready(self, chat: str) -> list[Entry]:
        return self.of(chat, "ready", *WAITS)

    def enters(self, chat: str, name: str, *, is_late: bool = False) -> str:
        before = self.left(chat)
        is_late = is_late or any(each.state == "late" for each in before)
        state = "late" if is_late else "left" if before else "ready"
        self.all.append(Entry(chat, name, state))
        return state

    @rule(chat=chats, is_due=st.booleans())
    def add(self, chat: str, *, is_due: bool) -> None:
        number = next(self.numbers)
        self.stored.append((chat, number))
        is_late = is_due and bool(self.left(chat))
        place = self.lines.add(chat, new(number, chat), is_late=is_late)
        state = self.enters(chat, f"m{number}", is_late=is_late)
        assert (place is not None) == (state == "ready")
        assert self.lines.add(chat, new(number, chat)) is None

    @rule(chat=chats)
    def stop(self, chat: str) -> None:
        self.lines.add(chat, StopDelegated(inbound(0, chat), "anna"))
        self.enters(chat, "")

    @rule(chats=st.lists(chats, max_size=4))
    def an_earlier_process_left(self, chats: list[str]) -> None:
        self.stored += ((chat, next(self.numbers)) for chat in chats)

    @rule(data=st.data())
    def refill(self, data: st.DataObject) -> None:
        settled = data.draw(st.sets(st.sampled_from(self.stored or [("a", -1)])))
        self.stored = [each for each in self.stored if each not in settled]
        moving = [x for x in self.all if x.state not in {"late", "left"}]
        stops: dict[str, list[Entry]] = defaultdict(list)
        known: dict[str, Entry] = {}
        followed: dict[str, str] = {}
        for each in self.all:
            if each in moving:
                continue
            if each.id:
                followed[each.chat], known[each.id] = each.id, each
            else:
                stops[followed.get(each.chat, "")].append(each)
        left = stops[""]
        for chat, number in self.stored:
            if f"m{number}" not in {x.id for x in moving}:
                left.append(known.get(f"m{number}") or Entry(chat, f"m{number}", ""))
                left += stops[f"m{number}"]
        for each in left:
            each.state = "left"
        self.all = [*moving, *left]
        self.lines.refill((chat, row(n, chat)) for chat, n in self.stored)
        self.first = [chat for chat in self.first if self.left(chat)]

    def moves(self, place: Place) -> Entry:
        """Compare a place that may move now with the next one of its chat."""
        entry = self.left(place.chat)[0]
        assert (place.id, entry.state) == (entry.id, "left")
        assert place.message is not None or not place.id  # its row is read
        entry.state = "ready"
        if place.chat in self.first and not self.left(place.chat):
            self.first.remove(place.chat)
        return entry

    @rule(chat=chats, most=st.integers(1, 3))
    def hurry(self, chat: str, most: int) -> None:
        if any(each.state == "late" for each in self.left(chat)):
            return
        wanted = [] if chat in self.first else self.left(chat)[:most]
        if wanted:
            self.first.append(chat)
        found = [self.moves(place) for place in self.lines.hurry(chat, most)]
        assert found == wanted

    @rule(most=st.integers(0, 5))
    def take(self, most: int) -> None:
        may = [x for x in self.all if x.state == "left"]
        found = 0
        for place in self.lines.take(most):
            expected = [x for x in self.first if self.of(x, "left")]
            assert not expected or place.chat == expected[0]
            self.moves(place)
            found += 1
        assert found == min(most, len(may))

    @rule(chat=chats, state=st.sampled_from(WAITS))
    def wait(self, chat: str, state: State) -> None:
        head = self.lines.head(chat)
        if head is not None:
            self.lines.wait(head, state)
            self.ready(chat)[0].state = state
            if head.id:
                assert self.lines.place(head.id, state) is head
                assert self.lines.place(head.id, "ready") is None

    @precondition(lambda self: any(map(self.ready, "abcd")))
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        chat = data.draw(st.sampled_from([x for x in "abcd" if self.ready(x)]))
        at = data.draw(st.integers(0, len(self.ready(chat)) - 1))
        self.lines.remove(self.lines.moving(chat)[at])
        self.all.remove(self.ready(chat)[at])

    @invariant()
    def all_stand_in_their_order(self) -> None:
        for chat in "abcd":
            moving = self.lines.moving(chat)
            assert [(x.id, x.state) for x in moving] == [
                (x.id, x.state) for x in self.ready(chat)
            ]
            assert self.lines.head(chat) is (moving[0] if moving else None)
            assert self.lines.has_left(chat) == bool(self.left(chat))
            assert (chat in self.lines) == any(x.chat == chat for x in self.all)
        for state in ("late", "left", "ready", *WAITS):
            found = sum(each.state == state for each in self.all)
            assert self.lines.count(state) == found
        late = {each.chat for each in self.all if each.state == "late"}
        assert {*self.lines.late} == late


TestCrowd = Crowd.TestCase
