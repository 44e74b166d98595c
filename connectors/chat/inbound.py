"""Brings a platform's messages into the company: the parts that all platforms share.

`SeenMessages` lets only one of several accounts submit a message, `Lanes` keep the
order of a channel, `Album` bounds the files of a message, and `Submission` has the
message stored, however long that takes.
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal, Protocol, TypeVar

import msgspec
import trio

from actors.errors import (
    NOT_STORED,
    ChatError,
    MessageRefusedError,
    OverloadedError,
    StoppingError,
)
from actors.messages.inbound import Attachment, Inbound
from actors.rules.text.cleaning import one_line
from actors.rules.text.limits import RecentMap
from actors.transport import Ingress
from connectors.chat.platforms import MIB
from connectors.fetch.messages import media_type
from runtime.errors import FencedError, KernelError, StoreUnavailableError
from runtime.fairness import most_of_one
from runtime.telemetry.logs import EventLog

FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0
"""Seconds, doubled from the one to the other."""


FileKind = Literal["image", "audio", "document"]


class PlatformFile(msgspec.Struct, frozen=True):
    """A file of a message, still on the platform's servers."""

    kind: FileKind
    name: str
    media_type: str
    """As the message says; may be empty."""

    def attached(self, content: bytes, media_type: str = "") -> Attachment:
        """Give it with its bytes, and what their server says that they are."""
        known = self.media_type or media_type
        return Attachment(self.kind, self.name, known, content=content)


class Waits:
    """How long to wait between two tries."""

    def __init__(self) -> None:
        self._next = FIRST_WAIT

    def next(self, asked: float | None = None) -> float:
        """Return the seconds until the next try.

        Args:
            asked: what the server asks for; it is not asked sooner.
        """
        wait, self._next = self._next, min(2 * self._next, LONGEST_WAIT)
        return max(wait, asked or 0.0)


LONGEST_NAME = 200
"""Characters."""


def shown_name(name: str) -> str:
    """Return a name in one line, without what cannot be seen, cut with an ellipsis."""
    return one_line(name, LONGEST_NAME)


def in_words(kind: str, *parts: str) -> str:
    """Return in words what is no text: `[location: Berlin, 52.5 13.4]`.

    Args:
        kind: what it is: `location`, `contact`, `sticker`, `poll` or `dice`.
        parts: what is known of it, as its platform tells; empty ones are left out.
    """
    known = ", ".join(part for part in map(shown_name, parts) if part)
    return f"[{kind}: {known}]" if known else f"[{kind}]"


def coordinates(latitude: object, longitude: object) -> str:
    """Return a point in degrees, to the metre; what is no number is left out."""
    point = (latitude, longitude)
    return " ".join(f"{each:.8g}" for each in point if isinstance(each, int | float))


# Chosen: the accounts lag behind each other by seconds; ten thousand messages
# are more than a platform sends in that time. What is forgotten is known to the
# database.
MOST_SEEN = 10_000


class SeenMessages:
    """Recent messages, so that only one of several accounts submits each."""

    def __init__(self, most: int = MOST_SEEN) -> None:
        self._done: RecentMap[str, None] = RecentMap(most)
        self._taken: dict[str, trio.Event] = {}

    async def claim(self, event_id: str) -> bool:
        """Claim a message to submit it; waits while another account has claimed it.

        Returns:
            True: the caller must now call `done` or `give_back`. False: it was done.
        """
        while (taken := self._taken.get(event_id)) is not None:
            await taken.wait()
        if event_id in self._done:
            return False
        self._taken[event_id] = trio.Event()
        return True

    def done(self, event_id: str) -> None:
        """Note that a message was submitted."""
        self._done[event_id] = None
        self.give_back(event_id)

    def give_back(self, event_id: str) -> None:
        """Give up a claim, so that another account may submit the message."""
        taken = self._taken.pop(event_id, None)
        if taken is not None:
            taken.set()


Job = Callable[[], Awaitable[object]]

# Chosen: what Slack sends in half a minute at its most (30,000 an hour) is a quarter of
# that. Discord's listener waits while there are more; Slack sends them again.
MOST_WAITING = 1_000
"""Jobs that may wait, in all lanes."""

# Chosen: a place is free again after milliseconds, unless a lane waits for a large file
# or for room.
PLACE_WITHIN = 2.0
"""Seconds that a lane waits for a place beside others; then it works without one, so
that lanes that wait keep no other waiting."""


class Lanes:
    """One lane for each channel in which something waits; each does one job at a time.

    Args:
        nursery: where the lanes run; a job that fails ends it.
        most: jobs that may wait.
        at_once: lanes that work side by side, as long as none of them waits long.
    """

    def __init__(
        self,
        nursery: trio.Nursery,
        most: int = MOST_WAITING,
        at_once: float = math.inf,
    ) -> None:
        self._nursery = nursery
        self._room = trio.Semaphore(most)
        self._most_of_one = most_of_one(most)
        self._side_by_side = trio.CapacityLimiter(at_once)
        self._lanes: dict[str, deque[Job]] = {}

    async def put(self, lane: str, job: Job) -> None:
        """Have a job done after the others of its lane; waits while too many wait."""
        await self._room.acquire()
        self._add(lane, job)

    def put_nowait(self, lane: str, job: Job) -> bool:
        """Have a job done after the others of its lane; False: too many wait.

        No lane has more than three quarters of the room for itself.
        """
        if len(self._lanes.get(lane, ())) >= self._most_of_one:
            return False
        try:
            self._room.acquire_nowait()
        except trio.WouldBlock:
            return False
        self._add(lane, job)
        return True

    def _add(self, lane: str, job: Job) -> None:
        if lane in self._lanes:
            self._lanes[lane].append(job)
        else:
            self._lanes[lane] = deque([job])
            self._nursery.start_soon(self._work, lane)

    async def _work(self, lane: str) -> None:
        jobs, places = self._lanes[lane], self._side_by_side
        has_place = False
        try:
            with trio.move_on_after(PLACE_WITHIN):
                await places.acquire_on_behalf_of(lane)
                has_place = True
            while jobs:
                try:
                    await jobs.popleft()()
                finally:
                    self._room.release()
        finally:
            if has_place:
                places.release_on_behalf_of(lane)
            for _ in jobs:
                self._room.release()
            del self._lanes[lane]


# Chosen: four of the largest that are fetched by default. In base64 it is 53 MiB, and
# the store takes 64 MiB at once (`SqliteOptions.max_queued_bytes`).
MOST_IN_ALL = 40 * MIB
"""Bytes of all files of one message; also the most of one, whatever settings say."""

NO_ROOM = f"all files of a message may have {MOST_IN_ALL // MIB} MiB"
FILE_NOT_STORED = "it could not be stored"

Found = tuple[Attachment | None, str]
"""A file; or None, and why it could not be had."""


class Album:
    """The byte budget for the files of one message, given out in order."""

    def __init__(self) -> None:
        self._left = MOST_IN_ALL

    def claim(self, size: int) -> bool:
        """Take room for the next file, before it is fetched; False: there is none.

        Args:
            size: bytes, as its platform says; 0: it does not say.
        """
        if size > self._left:
            return False
        self._left -= size
        return True

    def settle(self, size: int, found: Found) -> Found:
        """Return the room that a file did not take; drop a file larger than said."""
        attachment, why = found
        self._left += size
        if attachment is None:
            return None, why
        if not self.claim(len(attachment.content)):
            return None, NO_ROOM
        return found


class FetchableFile(Protocol):
    """A file of a message that is still at its platform; a `PlatformFile`."""

    @property
    def kind(self) -> str:
        """What it is."""
        ...

    @property
    def name(self) -> str:
        """Its name; may be empty."""
        ...

    @property
    def size(self) -> int:
        """Bytes, as its platform says; 0: it does not say."""
        ...


AnyFile = TypeVar("AnyFile", bound=FetchableFile)


async def fetch_files(
    files: Iterable[AnyFile],
    fetch: Callable[[AnyFile], Awaitable[Found]],
    note: Callable[[str], object],
) -> tuple[tuple[Attachment, ...], list[str]]:
    """Fetch the files of one message, one after the other, as far as there is room.

    Args:
        note: is told why a file is left out.

    Returns:
        The files, and for each that was left out a line that says so.
    """
    found: list[Attachment] = []
    lines: list[str] = []
    album = Album()
    for file in files:
        got, why = None, NO_ROOM
        if album.claim(file.size):
            got, why = album.settle(file.size, await fetch(file))
        if got is not None:
            found.append(got)
            continue
        note(why)
        lines.append(left_out(file.kind, file.name, why))
    return tuple(found), lines


FILE_NAME = re.compile(r"[^\w.()+ -]")


def attachment(name: str, content: bytes) -> Attachment:
    """Make the attachment for a file that came whole; its bytes say what it is.

    Args:
        name: as its sender calls it; a path is cut to its last part.
    """
    kind = media_type(content)
    top = kind.partition("/")[0]
    return Attachment(
        kind="image" if top == "image" else "audio" if top == "audio" else "document",
        name=FILE_NAME.sub("_", PurePath(name).name)[:128],
        media_type=kind,
        content=content,
    )


def left_out(kind: str, name: str, why: str) -> str:
    """Say in a message that a file of it is not there."""
    return f"[{kind} {name or 'without a name'} was not fetched: {why}]"


def without_files(inbound: Inbound) -> Inbound:
    """Return a message with a line in the place of each file."""
    notes = (left_out(x.kind, x.name, FILE_NOT_STORED) for x in inbound.attachments)
    lines = (inbound.text, *notes)
    text = "\n".join(line for line in lines if line)
    return msgspec.structs.replace(inbound, text=text, attachments=())


LATER = (OverloadedError, StoppingError, StoreUnavailableError)
"""Nothing was stored, and it is tried again: the platform keeps the message."""

LEFT_TO_OTHERS = (StoppingError, FencedError)
"""This process ends, and the next one, or another one, answers: nobody is told."""

Ended = Literal["handed_in", "refused", "lost"]
"""How it ended: stored; the domain never takes it; or it could not be stored."""

Trouble = Literal["waits", "refused", "lost"]
"""Of what a sender is told."""

Fill = Callable[[Inbound], Awaitable[Inbound]]
"""Fetches what came with a message."""

Tell = Callable[[Inbound, str, Trouble], Awaitable[object]]
"""Says something where a message was written, as well as it goes."""


@dataclass(frozen=True)
class Submission:
    """Submits one account's messages to the company."""

    log: EventLog
    count: Callable[[Ended], object]
    """Takes note of how a message ended."""

    tell: Tell
    """Asked only where somebody waits for an answer."""

    async def submit(
        self, inbound: Inbound, ingress: Ingress, fill: Fill | None
    ) -> bool:
        """Have a message stored.

        Args:
            fill: asked only for those who may write: a stranger has us carry nothing;
                None: there is nothing to fetch.

        Returns:
            Whether `fill` was asked, and all of it is stored.
        """
        is_filled = False
        try:
            if fill is not None and await self._insist(ingress.is_admitted, inbound):
                inbound = await fill(inbound)
                is_filled = True
            await self._store(inbound, ingress)
        except MessageRefusedError as error:
            self.count("refused")
            await self._tell(inbound, str(error), "refused")
        except (ChatError, KernelError) as error:
            # It would be refused for ever, and hold back all that comes after it.
            self.count("lost")
            self.log.fault("message not taken", error, message=inbound.platform_id)
            await self._tell(inbound, "this message could not be taken", "lost")
        else:
            self.count("handed_in")
            return is_filled
        return False

    async def _store(self, inbound: Inbound, ingress: Ingress) -> None:
        """Store a message; without its files if they cannot be stored."""
        try:
            await self._insist(ingress.accept, inbound)
        except KernelError as error:
            if not inbound.attachments:
                raise
            # Why once more: the words are worth an answer, and say what is missing.
            self.log.fault("files not taken", error, message=inbound.platform_id)
            await self._insist(ingress.accept, without_files(inbound))

    async def _insist(
        self, ask: Callable[[Inbound], Awaitable[bool]], inbound: Inbound
    ) -> bool:
        """Ask the company about a message until it answers; tell the sender once."""
        waits = Waits()
        is_told = False
        while True:
            try:
                return await ask(inbound)
            except LATER as error:
                why = str(error) or "?"
                self.log.warning("message waits", message=inbound.platform_id, why=why)
                if not is_told and not isinstance(error, LEFT_TO_OTHERS):
                    is_told = True
                    await self._tell(inbound, words_of(error), "waits")
                await trio.sleep(waits.next())

    async def _tell(self, inbound: Inbound, words: str, trouble: Trouble) -> None:
        """Tell a sender who expects an answer that it is delayed."""
        if is_for_agent(inbound):
            await self.tell(inbound, f"⚠️ {words}", trouble)


def words_of(error: Exception) -> str:
    """Tell somebody why a message waits."""
    is_of_the_store = isinstance(error, StoreUnavailableError)
    why = NOT_STORED if is_of_the_store else str(error) or type(error).__name__
    return f"{why}. It waits here, and is tried again by itself."


def is_for_agent(inbound: Inbound) -> bool:
    """Whether somebody speaks to an agent, as far as the platform tells."""
    quoted = inbound.quoted
    is_named = bool(inbound.agent or inbound.mentions)
    return inbound.is_direct or is_named or (quoted is not None and bool(quoted.agent))
