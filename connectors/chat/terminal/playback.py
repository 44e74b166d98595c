"""A room that is played: people speak from a file, all that is said is printed.

Knows no file and no order: who speaks when is the player's (`commands/play.py`).

A play is a text file that says who is in a room, and who says what there:

    # What follows a hash at the beginning of a line is for readers.
    room: kitchen                 (its name as a chat; else the file's name)
    people: Ada (admin), Grace    (else: whoever speaks; what they are on the platform)
    agents: anna, bob             (those present; else: all of the settings)
    settings: kitchen.toml        (beside this file; `--config` comes first)

    Ada: morning everybody
    Ada: @anna can you ask bob
      for the figures?            (an indented line goes on what was said)
    wait 2                        (seconds)
    Grace (reply to anna): thank you
    Grace (at once): and mine?    (does not wait until the room is quiet)
    Ada: /stop

A play is wrong with each mistake told at its line, all of them at once.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator

import msgspec
import trio

from actors.errors import ChatError, DeliveryBusyError, DeliveryRefusedError
from actors.messages.deliveries import Abilities, Delivery, Draft, TakesFiles, Typing
from actors.messages.inbound import Address, Inbound, Quoted
from actors.outbound.draft_rules import DraftPiece
from actors.rules.text.similarity import did_you_mean, near_misses
from actors.transport import Ingress
from connectors.chat.terminal.plain import Console, Printer, TerminalWriter
from connectors.files.blobs import BlobFolder, with_path
from runtime.clock import Clock
from runtime.errors import KernelError, SettingsError, SettingsListError
from runtime.ids import IdSource
from runtime.telemetry.logs import EventLog

LOG = EventLog("playing")

# Chosen: more than one line's answers; what is older is not said again so late.
MOST_KNOWN = 1_000
"""Deliveries that are known to have been printed."""

LINE = "line"
"""Among a message's `platform_fields`: where in the file it stands."""


class RoomSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Which room is played."""

    connector: str = "room"
    """Name of the connector account, as in the settings."""

    chat: str = "room"
    """The room's id on its platform."""

    agents: tuple[str, ...] = ()
    """Names of the agents that are in it."""

    roles: dict[str, tuple[str, ...]] = {}
    """By person: what they are on the platform."""


class Last(msgspec.Struct, frozen=True):
    """What somebody said last."""

    receipt: str
    quoted: Quoted


class PlayingTransport:
    """A room as a chat account; implements `actors.transport.Transport`."""

    presence = None
    """It can show nothing but messages."""

    blobs: BlobFolder | None = None
    """Has the bytes of files that agents send; people are told where they lie."""

    shown: Callable[[str], str] = staticmethod(str)
    """Gives what people call an agent."""

    def __init__(
        self, settings: RoomSettings, console: Console, clock: Clock, ids: IdSource
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._ids = ids
        self._address = Address(settings.connector, settings.chat)
        self._printer = Printer(console)
        self._unsaid: deque[tuple[Cue, trio.Event]] = deque()
        self._delivered: deque[str] = deque(maxlen=MOST_KNOWN)
        self._last: dict[str, Last] = {}
        """By name, case-folded; of the few that are in the room."""

        self.refused: list[tuple[Cue, str]] = []
        """What was not taken in, and why; no more than there are lines in a file."""

        self._changed = trio.Event()
        self._has_ended = False
        self.has_begun = False
        """Whether an answer has begun since somebody spoke."""

        self.was_asked = False
        """Whether something was asked, since somebody spoke, that /approve answers."""

        self.output_error: OSError | None = None
        """Why nothing could be printed any more."""

    @property
    def abilities(self) -> Abilities:
        """Say that paper remembers nothing: what may have been printed is in doubt."""
        return Abilities(files=TakesFiles())

    # --- people -------------------------------------------------------------------

    async def say(self, cue: Cue) -> None:
        """Have a person speak; returns when that was taken in, or refused."""
        self.has_begun = self.was_asked = False
        is_done = self.put(cue)
        await is_done.wait()

    def put(self, cue: Cue) -> trio.Event:
        """Have a person speak soon; gives what is set when that was handed in."""
        is_done = trio.Event()
        self._unsaid.append((cue, is_done))
        self._note_change()
        return is_done

    def notice(self, text: str) -> None:
        """Print something that nobody in the room says."""
        self._show("", text)

    async def listen(self, ingress: Ingress) -> None:
        """Hand in what people say until cancelled, or until nobody reads any more."""
        self._has_ended = False
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._print, nursery.cancel_scope)
                while True:
                    while not self._unsaid:
                        await self._changed.wait()
                    cue, is_done = self._unsaid[0]
                    await self._submit(ingress, cue)
                    self._unsaid.popleft()
                    is_done.set()
        finally:
            self._has_ended = True

    async def _submit(self, ingress: Ingress, cue: Cue) -> None:
        to = f" (to {cue.reply_to})" if cue.reply_to else ""
        self._show(f"{cue.speaker}{to}", cue.text)
        inbound = self._inbound(cue)
        said = Quoted(text=cue.text, sender_name=cue.speaker)
        self._last[cue.speaker.casefold()] = Last(inbound.platform_id, said)
        try:
            if not await ingress.accept(inbound):
                self._refuse(cue, f"{cue.speaker} is not let in here")
        except (ChatError, KernelError) as error:
            LOG.warning("message not taken", line=cue.line, error=str(error))
            self._refuse(cue, str(error))
        # What came before an answer to it is printed before whatever comes next.
        await self._printer.put("").wait()

    def _refuse(self, cue: Cue, why: str) -> None:
        self.refused.append((cue, why))
        self.notice(f"not taken: {why}")

    def _inbound(self, cue: Cue) -> Inbound:
        new_id = self._ids.new()
        to = self._last.get(cue.reply_to.casefold()) if cue.reply_to else None
        if cue.reply_to and to is None:
            self.notice(f"{cue.reply_to} has said nothing yet: this replies to nobody")
        return Inbound(
            id=new_id,
            platform="room",
            platform_id=new_id,
            address=self._address,
            sender_id=cue.speaker,
            sender_name=cue.speaker,
            text=cue.text,
            received_at=self._clock.wall(),
            is_direct=False,
            reply_to="" if to is None else to.receipt,
            quoted=None if to is None else to.quoted,
            present=self._settings.agents,
            roles=self._settings.roles.get(cue.speaker, ()),
            platform_fields={LINE: str(cue.line)},
        )

    # --- agents -------------------------------------------------------------------

    async def deliver(self, delivery: Delivery) -> str:
        """Print an answer; returns when it is printed.

        Raises:
            DeliveryBusyError: the room is not open yet.
            DeliveryRefusedError: the room was closed.
        """
        self._check_open()
        delivery = with_path(delivery, self.blobs)
        if delivery.id not in self._delivered:
            self._delivered.append(delivery.id)
            self._take(delivery)
        await self._printer.put("").wait()
        self._check_open()
        return delivery.id

    async def look_up(self, delivery: Delivery) -> str | None:
        """Refuse: nobody can ask paper; see the port.

        Raises:
            DeliveryBusyError: always; `abilities` says that it is not to be asked.
        """
        raise DeliveryBusyError(f"nobody can tell whether {delivery.id} was printed")

    def show_draft(self, draft: Draft) -> None:
        """Note that somebody writes; what is printed is the whole."""
        if draft.text:
            self.has_begun = True

    def show_typing(self, typing: Typing) -> None:
        """Do nothing: `abilities` says so; see the port."""

    async def settle(self, inbound: Inbound, reason: str) -> None:
        """Do nothing: what became of everything is told at the end."""

    def _take(self, delivery: Delivery) -> None:
        self.has_begun = True
        self.was_asked = self.was_asked or "/approve " in delivery.text
        if delivery.kind == "silence":
            return
        self._show(self.shown(delivery.agent), delivery.text)
        if delivery.agent:
            said = Quoted(
                text=delivery.text, sender_name=delivery.agent, agent=delivery.agent
            )
            self._last[delivery.agent.casefold()] = Last(delivery.id, said)

    def _check_open(self) -> None:
        if self._has_ended:
            raise DeliveryRefusedError("the room was closed")
        if not self._printer.is_running:
            raise DeliveryBusyError("the room is not open yet")

    # --- paper --------------------------------------------------------------------

    def _show(self, name: str, text: str) -> None:
        piece = DraftPiece(name, text, begins=True, ends=True)
        self._printer.put(TerminalWriter().write([piece]))

    def _note_change(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    async def _print(self, listening: trio.CancelScope) -> None:
        try:
            await self._printer.run()
        except OSError as error:
            LOG.info("output closed", error=str(error))
            self.output_error = error
            listening.cancel()


# Chosen: far more than anybody writes by hand, so that a wrong file is told at once.
MOST_LINES = 10_000

LONGEST_WAIT = 86_400.0
"""Seconds."""

HEADS = ("room", "people", "agents", "settings")
HEAD = re.compile(rf"({'|'.join(HEADS)})\s*:\s*(.*)")
WAIT = re.compile(r"wait\s+(\S+?)\s*(?:s|seconds?)?")
SPEECH = re.compile(r"([^\s:()][^:()]*?)\s*(?:\(([^()]*)\))?\s*:(.*)")
REPLY = re.compile(r"reply to\s+(\S.*)")
AT_ONCE = "at once"
PERSON = re.compile(r"([^()]*?)\s*\(([^()]*)\)")

NOT_READ = "this cannot be read"
FORMS = "write `Ada: words`, `Ada (reply to anna): words`, or `wait 2`"


class Cue(msgspec.Struct, frozen=True):
    """One person says something."""

    line: int
    """In the file, from 1."""

    speaker: str
    text: str
    reply_to: str = ""
    """Whose last words it replies to: a person's or an agent's name; empty: none."""

    is_at_once: bool = False
    """Whether it is said while others still write."""


class Wait(msgspec.Struct, frozen=True):
    """Nobody says anything for a while."""

    line: int
    seconds: float


Step = Cue | Wait


class Play(msgspec.Struct, frozen=True):
    """A whole file."""

    steps: tuple[Step, ...]
    room: str = ""
    people: tuple[str, ...] = ()
    """Give the speaker and the others who are named."""

    agents: tuple[str, ...] = ()
    """Those present; empty: all that there are."""

    roles: dict[str, tuple[str, ...]] = {}
    """By person: what they are on the platform. Not to be changed."""

    settings: str = ""
    """As it stands in the file; empty: it names none."""

    lines: dict[str, int] = {}
    """Where each heading stands. Not to be changed."""


def read_play(text: str, file: str) -> Play:
    """Read a whole file.

    Raises:
        SettingsError: something is wrong; its `problems` tell each with its line.
    """
    reader = _PlayReader(file)
    lines = text.splitlines()
    for number, line in enumerate(lines[:MOST_LINES], start=1):
        reader.take(number, line)
    if len(lines) > MOST_LINES:
        reader.complain(MOST_LINES + 1, f"a play has at most {MOST_LINES} lines")
    return reader.finish()


def check_agents(play: Play, known: Iterable[str], file: str) -> Play:
    """Hold a play against the agents of the settings; give it with their names.

    Raises:
        SettingsError: an agent is not there, or a person has an agent's name.
    """
    names = {name.casefold(): name for name in known}
    line = play.lines.get("agents", 0)
    problems = [
        SettingsError(
            f"there is no agent {agent!r} in the settings",
            file=file,
            line=line,
            hint=_known(agent, names.values()),
        )
        for agent in play.agents
        if agent.casefold() not in names
    ]
    for step in play.steps:
        if isinstance(step, Cue) and step.speaker.casefold() in names:
            text = f"{step.speaker} is an agent, and speaks for itself"
            hint = "a play has only the people's lines"
            problems.append(SettingsError(text, file=file, line=step.line, hint=hint))
    _refuse([*problems, *_replies(play, names, file)])
    agents = tuple(names[each.casefold()] for each in play.agents)
    return msgspec.structs.replace(play, agents=agents or tuple(names.values()))


def _replies(play: Play, names: dict[str, str], file: str) -> Iterator[SettingsError]:
    """Find replies to somebody who is not there, or has not spoken yet."""
    present = {each.casefold() for each in play.agents or names}
    spoken: set[str] = set()
    for step in play.steps:
        if isinstance(step, Wait):
            continue
        to = step.reply_to.casefold()
        if to and to not in spoken and to not in present:
            has_none = to in {each.casefold() for each in play.people}
            why = "has said nothing yet" if has_none else "is not in this room"
            text = f"{step.reply_to} {why}, so nobody can reply"
            others = [*play.people, *(play.agents or names)]
            hint = "" if has_none else _known(step.reply_to, others)
            yield SettingsError(text, file=file, line=step.line, hint=hint)
        spoken.add(step.speaker.casefold())


class _PlayReader:
    """What was read so far."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._steps: list[Step] = []
        self._heads: dict[str, str] = {}
        self._lines: dict[str, int] = {}
        self._roles: dict[str, tuple[str, ...]] = {}
        self._problems: list[SettingsError] = []
        self._may_go_on = False

    def complain(self, line: int, text: str, hint: str = "") -> None:
        """Note one mistake."""
        self._may_go_on = False
        self._problems.append(
            SettingsError(text, file=self._file, line=line, hint=hint)
        )

    def take(self, number: int, line: str) -> None:
        """Read one line."""
        words = line.strip()
        if not words or words.startswith("#"):
            return
        if line[0].isspace():
            self._go_on(number, words)
        elif match := HEAD.fullmatch(words):
            self._take_head(number, match[1], match[2])
        elif match := WAIT.fullmatch(words):
            self._take_wait(number, match[1])
        elif match := SPEECH.fullmatch(words):
            self._take_speech(number, match)
        else:
            self.complain(number, NOT_READ, FORMS)

    def finish(self) -> Play:
        """Return the play, or raise what is wrong with it."""
        cues = [each for each in self._steps if isinstance(each, Cue)]
        people = self._names("people")
        for cue in cues:
            self._check_speaker(cue, people)
        if not (cues or self._problems):
            self.complain(0, "nobody says anything", FORMS)
        _refuse(sorted(self._problems, key=lambda problem: problem.line))
        return Play(
            steps=tuple(self._steps),
            room=self._heads.get("room", ""),
            people=tuple(dict.fromkeys((*people, *(cue.speaker for cue in cues)))),
            agents=self._names("agents"),
            roles=self._roles,
            settings=self._heads.get("settings", ""),
            lines=self._lines,
        )

    def _go_on(self, number: int, words: str) -> None:
        last = self._steps[-1] if self._may_go_on and self._steps else None
        if isinstance(last, Cue):
            text = f"{last.text}\n{words}".strip()
            self._steps[-1] = msgspec.structs.replace(last, text=text)
        else:
            text = "an indented line goes on what was said right before, and nobody did"
            self.complain(number, text, FORMS)

    def _take_head(self, number: int, name: str, value: str) -> None:
        if self._steps:
            self.complain(number, f"`{name}:` must stand before the first words")
        elif name in self._heads:
            self.complain(number, f"`{name}:` stands in line {self._lines[name]}, too")
        elif not value:
            self.complain(number, f"`{name}:` says nothing")
        else:
            kept = self._without_roles(value) if name == "people" else value
            self._heads[name], self._lines[name] = kept, number
            names = self._names(name)
            if len({each.casefold() for each in names}) < len(names):
                self.complain(number, f"`{name}:` names somebody twice")

    def _without_roles(self, people: str) -> str:
        names: list[str] = []
        for person in people.split(","):
            match = PERSON.fullmatch(person.strip())
            names.append(match[1] if match else person)
            if match:
                self._roles[match[1]] = tuple(match[2].split())
        return ",".join(names)

    def _take_wait(self, number: int, given: str) -> None:
        try:
            seconds = float(given)
        except ValueError:
            seconds = -1.0
        if not 0 <= seconds <= LONGEST_WAIT:
            most = f"{LONGEST_WAIT:g}"
            self.complain(number, f"wait takes seconds, 0 to {most}, not {given!r}")
            return
        self._may_go_on = False
        self._steps.append(Wait(number, seconds))

    def _take_speech(self, number: int, match: re.Match[str]) -> None:
        reply_to, is_at_once = "", False
        for part in (match[2] or "").split(","):
            how = part.strip()
            if found := REPLY.fullmatch(how):
                reply_to = found[1]
            elif how == AT_ONCE:
                is_at_once = True
            elif how or match[2] is not None:
                text = f"nobody speaks like this: ({match[2]})"
                self.complain(number, text, "write (reply to anna), (at once), or both")
                return
        self._may_go_on = True
        text = match[3].strip()
        self._steps.append(Cue(number, match[1], text, reply_to, is_at_once))

    def _check_speaker(self, cue: Cue, people: tuple[str, ...]) -> None:
        if people and cue.speaker not in people:
            text = f"{cue.speaker!r} is not among the people of line"
            text = f"{text} {self._lines['people']}"
            self.complain(cue.line, text, _known(cue.speaker, people))
        elif not cue.text:
            self.complain(cue.line, f"{cue.speaker} says nothing")

    def _names(self, head: str) -> tuple[str, ...]:
        parts = (part.strip() for part in self._heads.get(head, "").split(","))
        return tuple(part for part in parts if part)


def _known(name: str, names: Iterable[str]) -> str:
    all_names = tuple(names)
    near = did_you_mean(near_misses(name, all_names)).strip()
    return f"{near} known: {', '.join(all_names)}".strip()


def _refuse(problems: list[SettingsError]) -> None:
    if len(problems) > 1:
        raise SettingsListError(tuple(problems))
    if problems:
        raise problems[0]
