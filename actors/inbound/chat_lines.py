"""The lines of all chats: what each is still to be told to sessions, in its order.

Pure. A message has one place, from the moment at which the router knows of it until
sessions have it or it is settled; found in the store meanwhile, it keeps that place.
Only the head of a line moves: hooks and models are asked about it, and its copies are
stored, while the others wait.

What an earlier process or a broken session left is routed little by little, the oldest
first. Where somebody writes again, that chat goes first, so that nobody waits for other
chats; inside a chat nothing overtakes.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from actors.inbound.relevance import OpenCheck
from actors.journal.unsettled import UnroutedMessage, read_back
from actors.protocol import StopDelegated
from runtime.store.rows import StoredMessage

State = Literal["late", "left", "ready", "hooks", "finding", "models", "copying"]
"""What a place waits for:

- `late`: new; for a look at what the store has of its chat from before;
- `left`: until it is among the next that are routed;
- `ready`: to be the head of its line, and then for nothing;

and as the head of its line:

- `hooks`: for hooks, and until what they said is stored;
- `finding`: until the store has said which copies an earlier process made;
- `models`: for models that are asked whom the words are for;
- `copying`: until copies for further agents are stored.
"""

ASKED: frozenset[State] = frozenset({"hooks", "models"})
"""States that may last for seconds."""


class Place:
    """One place in the line of a chat: a message, or a stop for those before it.

    Args:
        item: the message; as a stored row, until it may move.
    """

    __slots__ = ("chat", "check", "id", "item", "message", "state")

    def __init__(
        self, chat: str, item: StoredMessage | UnroutedMessage | StopDelegated
    ) -> None:
        self.chat = chat
        self.put(item)
        self.state: State = "ready"
        """What it waits for."""

        self.check: OpenCheck | None = None
        """What models are asked about it, also while it waits."""

    def put(self, item: StoredMessage | UnroutedMessage | StopDelegated) -> None:
        """Put something else in its place; of the same message."""
        self.item = item
        self.message = item if isinstance(item, UnroutedMessage) else None
        """The message, if it is one and was read."""

        self.id = item.id if isinstance(item, StoredMessage) else ""
        """The message's id; empty for a stop."""

        if self.message is not None:
            self.id = self.message.inbound.id


class ChatLine(msgspec.Struct):
    """The places of one chat."""

    ready: deque[Place] = msgspec.field(default_factory=deque)
    """Those that move as soon as they are the head; the first one is."""

    left: deque[Place] = msgspec.field(default_factory=deque)
    """Behind them those that are routed little by little."""


class ChatLines:
    """The lines of all chats with something to be routed; none is empty.

    No more than connectors have open, and what an earlier process left.
    """

    def __init__(self) -> None:
        self._lines: dict[str, ChatLine] = {}
        self._places: dict[str, Place] = {}
        """By the message's id."""

        self._order: deque[str] = deque()
        """The chat of each place that is left, oldest first, also of some that are
        routed by now."""

        self._urgent: dict[str, None] = {}
        """Chats that go first, in this order."""

        self._states: Counter[State] = Counter()

    def __contains__(self, chat: str) -> bool:
        """Tell whether anything of a chat has a place."""
        return chat in self._lines

    def count(self, state: State) -> int:
        """Count the places that wait for something."""
        return self._states[state]

    def place(self, message_id: str, state: State) -> Place | None:
        """Give a message's place, if it waits for this; None: it does not any more."""
        found = self._places.get(message_id)
        return found if found is not None and found.state == state else None

    def checked(self, message_id: str) -> Place | None:
        """Give the place of a message about which models are asked."""
        found = self._places.get(message_id)
        return found if found is not None and found.check is not None else None

    @property
    def late(self) -> tuple[str, ...]:
        """Chats in which something is late."""
        if not self._states["late"]:
            return ()
        lines = self._lines.items()
        found = (chat for chat, x in lines if x.left and x.left[-1].state == "late")
        return tuple(found)

    def head(self, chat: str) -> Place | None:
        """Give the head of a chat's line; None: nothing there may move."""
        line = self._lines.get(chat)
        return line.ready[0] if line is not None and line.ready else None

    def moving(self, chat: str) -> tuple[Place, ...]:
        """Give the head of a chat's line, and those behind it that may move next."""
        line = self._lines.get(chat)
        return () if line is None else tuple(line.ready)

    def has_left(self, chat: str = "") -> bool:
        """Tell whether anything is left to be routed little by little.

        Args:
            chat: there; empty: anywhere. There late ones count, too.
        """
        if not chat:
            return self._states["left"] > 0
        return chat in self._lines and bool(self._lines[chat].left)

    # --- taking places --------------------------------------------------------------

    def add(
        self, chat: str, item: UnroutedMessage | StopDelegated, *, is_late: bool = False
    ) -> Place | None:
        """Put a message, or a stop, behind all that its chat has.

        Args:
            item: of a message that has a place only its row is replaced.
            is_late: whether it has to wait for a look at what the store has.

        Returns:
            Its place, if it is a new one that may move; else None.
        """
        place = Place(chat, item)
        known = self._places.get(place.id)
        if known is not None:
            if isinstance(known.item, StoredMessage):
                known.put(item)  # says when it arrived, too
            return None
        line = self._lines.setdefault(chat, ChatLine())
        if line.left and line.left[-1].state == "late":
            is_late = True
        if line.left or is_late:
            self._leave(line, place, is_late=is_late)
            return None
        line.ready.append(place)
        self._enter(place, "ready")
        return place

    def refill(self, rows: Iterable[tuple[str, StoredMessage]]) -> None:
        """Let all messages of the store be routed that do not move already.

        Those with a place keep it. What is left, or late, and not among them was
        settled; a stop goes with the message that it followed.

        Args:
            rows: each with its chat, the oldest first.
        """
        found, stops = self._take_left()
        for chat, row in rows:
            if row.id in self._places:
                continue  # it moves
            line = self._lines.setdefault(chat, ChatLine())
            place = found.get(row.id)
            if place is None or isinstance(place.item, StoredMessage):
                place = Place(chat, row)
            for each in (place, *stops.get(row.id, ())):
                self._leave(line, each)
        for chat in tuple(self._lines):
            self._drop_if_empty(chat)
        self._urgent = {chat: None for chat in self._urgent if self.has_left(chat)}

    # --- moving -----------------------------------------------------------------------

    def hurry(self, chat: str, most: int) -> Iterator[Place]:
        """Let a chat go first from now on; it may have a few places moved at once.

        Args:
            chat: where a new message arrived.
            most: most places to let move now.

        Yields:
            Those that may move now, oldest first; none if it goes first already.
        """
        if chat in self._urgent or not self.has_left(chat):
            return
        self._urgent[chat] = None
        for _ in range(min(most, len(self._lines[chat].left))):
            yield from self._let_move(chat)

    def take(self, most: int) -> Iterator[Place]:
        """Let the next places move, `most` at most; give each as it may.

        One is left out that cannot be read.
        """
        for _ in range(most):
            chat = self._next()
            if chat is None:
                return
            yield from self._let_move(chat)

    def wait(self, head: Place, state: State) -> None:
        """Let the head of a line wait for something."""
        self._states[head.state] -= 1
        self._enter(head, state)

    def remove(self, place: Place) -> None:
        """Take a place out: sessions have its message, or it is settled."""
        line = self._lines[place.chat]
        if line.ready[0] is place:
            line.ready.popleft()
        else:
            line.ready.remove(place)
        self._states[place.state] -= 1
        self._places.pop(place.id, None)
        self._drop_if_empty(place.chat)

    def _next(self) -> str | None:
        """Name the chat whose next place is to move; None: there is none."""
        while self._urgent or self._order:
            chat = next(iter(self._urgent)) if self._urgent else self._order.popleft()
            if self.has_left(chat) and self._lines[chat].left[0].state == "left":
                return chat
            self._urgent.pop(chat, None)
        return None

    def _let_move(self, chat: str) -> Iterator[Place]:
        """Let the next place of a chat move, once its row is read."""
        line = self._lines[chat]
        place = line.left.popleft()
        if not line.left:
            self._urgent.pop(chat, None)
        self._states[place.state] -= 1
        line.ready.append(place)
        self._enter(place, "ready")
        if isinstance(place.item, StoredMessage):
            read = read_back(place.item)
            if not read:
                self.remove(place)
                return
            place.put(read[0])
        yield place

    # --- the two ends -----------------------------------------------------------------

    def _enter(self, place: Place, state: State) -> None:
        place.state = state
        self._states[state] += 1
        if place.id:
            self._places[place.id] = place

    def _leave(self, line: ChatLine, place: Place, *, is_late: bool = False) -> None:
        """Put a place behind all that is left of its chat."""
        line.left.append(place)
        self._enter(place, "late" if is_late else "left")
        if not is_late:
            self._order.append(place.chat)

    def _take_left(self) -> tuple[dict[str, Place], dict[str, list[Place]]]:
        """Take out all that is left or late; give the messages, and the stops.

        Stops by the message that each follows; one that follows none stays.
        """
        places = [each for line in self._lines.values() for each in line.left]
        for line in self._lines.values():
            line.left.clear()
        self._order.clear()
        self._states["late"] = self._states["left"] = 0
        found: dict[str, Place] = {}
        stops: dict[str, list[Place]] = {}
        followed: dict[str, str] = {}
        for place in places:
            if place.id:
                found[place.id] = self._places.pop(place.id)
                followed[place.chat] = place.id
            elif place.chat in followed:
                stops.setdefault(followed[place.chat], []).append(place)
            else:
                self._leave(self._lines[place.chat], place)
        return found, stops

    def _drop_if_empty(self, chat: str) -> None:
        line = self._lines[chat]
        if not (line.ready or line.left):
            del self._lines[chat]
