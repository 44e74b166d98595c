"""The files of one turn: attachments of the question, and files that go out.

The turn reads attachments when it begins, not when the message comes in: messages are
acknowledged without waiting for that, and a crash only means reading them again. Files
that go out are copied at once.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from actors.agents.persona import Persona
from actors.errors import ToolError
from actors.hooks.asker import worded_files
from actors.journal.plan import NOTHING, Carried
from actors.messages.inbound import Inbound, Media, SentFile, ToolResult
from actors.messages.keys import owner_of
from actors.ports import PictureWatch
from actors.protocol import StartTurn
from actors.rules.markers.actions import Action, SendFile
from actors.rules.markers.outcomes import ActionOutcome
from actors.rules.prompt.untrusted import with_quote
from actors.services import Services
from actors.turn.steps import StepJournal
from runtime.actor.actor import Actor
from runtime.telemetry.logs import EventLog

LOG = EventLog("files")

# Chosen: the platforms take as many as one album; for more there are archives.
MOST_FILES = 10
"""Most files of one answer."""

TOO_MANY = f"one answer may bring {MOST_FILES} files"
NOT_ALLOWED = "this agent may not send files here without being asked"
NO_FILES = "files cannot be sent here"


class OutgoingFiles(msgspec.Struct, frozen=True):
    """The files that one turn sends."""

    files: tuple[SentFile, ...] = ()
    """Sent by tools."""

    is_free: bool = False
    """Whether the agent may send more by directives in its text. It may not if the tool
    for sending is denied or needs an approval."""


NOTHING_SENT = OutgoingFiles()


async def enclose(
    wants: Iterable[Action],
    sending: OutgoingFiles,
    persona: Persona,
    services: Services,
) -> Carried:
    """Copy the files that directives in an answer name.

    Args:
        wants: all directives of the answer; only files count.
        sending: the files that go out already.
    """
    wanted = [each for each in wants if isinstance(each, SendFile)]
    if not wanted:
        return NOTHING
    files: list[SentFile] = []
    outcomes: list[ActionOutcome] = []
    for each in wanted:
        try:
            is_full = len(files) + len(sending.files) >= MOST_FILES
            files.append(await _copy(each, sending, persona.name, services, is_full))
        except ToolError as error:
            refused = ActionOutcome(kind="refused", what=each.path, why=str(error))
            outcomes.append(refused)
    return Carried(files=tuple(files), outcomes=tuple(outcomes))


async def _copy(
    wanted: SendFile,
    sending: OutgoingFiles,
    agent: str,
    services: Services,
    is_full: bool,  # noqa: FBT001
) -> SentFile:
    enclosures = services.enclosures
    if not sending.is_free:
        raise ToolError(NOT_ALLOWED)
    if enclosures is None:
        raise ToolError(NO_FILES)
    if is_full:
        raise ToolError(TOO_MANY)
    return await enclosures.enclose(
        agent, wanted.path, show_as=wanted.kind, caption=wanted.caption
    )


def with_files(carried: Carried, sending: OutgoingFiles) -> Carried:
    """Put the files of tools before those of the text; each once."""
    if not (sending.files or carried.files):
        return carried
    each_once = dict.fromkeys((*sending.files, *carried.files))
    return msgspec.structs.replace(carried, files=tuple(each_once)[:MOST_FILES])


async def with_images(
    result: ToolResult, tool: str, persona: Persona, services: Services
) -> ToolResult:
    """Send a tool's pictures with the answer, if the settings say so.

    Args:
        tool: its name; the files are named after it.
    """
    enclosures = services.enclosures
    is_on = persona.config.send_tool_images
    if enclosures is None or not (is_on and result.images):
        return result
    files: list[SentFile] = []
    for number, image in enumerate(result.images[:MOST_FILES], 1):
        try:
            name = f"{tool}-{number}"
            files.append(await enclosures.enclose_image(persona.name, image, name))
        except ToolError as error:
            LOG.warning("picture of a tool not sent", tool=tool, why=str(error))
    return msgspec.structs.replace(result, files=(*result.files, *files))


async def watch_pictures(persona: Persona, services: Services) -> PictureWatch | None:
    """Watch an agent's folder for new pictures, if the settings say so."""
    enclosures = services.enclosures
    if enclosures is None or not persona.config.send_new_images:
        return None
    return await enclosures.watch(persona.name)


async def with_pictures(
    carried: Carried, pictures: PictureWatch | None, steps: StepJournal
) -> Carried:
    """Send new pictures of the folder, too; each file once.

    Why recorded: they are removed from the folder, and must not be lost if the turn is
    cut off before its answer is stored.
    """
    files = steps.taken
    if pictures is not None and not files:
        files = await pictures.take(MOST_FILES - len(carried.files))
        if files:
            await steps.take(files)
            if steps.is_superseded:
                return carried
            await pictures.clear()
    known = {each.digest for each in carried.files}
    new = tuple([each for each in files if each.digest not in known])
    return msgspec.structs.replace(carried, files=(*carried.files, *new))


NAMED = "[{kind}: {name}]"
NOBODY_READS = "[What came along was not read: this company reads no attachments]"


class ReadQuestion(msgspec.Struct, frozen=True):
    """A question with its attachments read."""

    start: StartTurn
    """The text of its message includes the texts of the attachments."""

    heard: str | None = None
    """The question as the history keeps it; None: as it was written."""


async def read_attachments(
    start: StartTurn, services: Services, turn: Actor
) -> ReadQuestion:
    """Read the attachments of a question; without any it stays as it is."""
    inbound = start.inbound
    if not inbound.attachments:
        return ReadQuestion(start)
    if services.media is None:
        media = Media(text=NOBODY_READS, kept=NOBODY_READS)
    else:
        whose = owner_of(inbound)
        media = await services.media.read(inbound.attachments, whose)
        media = await worded_files(media, inbound, (services, turn))
    asked = msgspec.structs.replace(
        inbound, text=with_text(inbound.text, media.text), attachments=()
    )
    start = msgspec.structs.replace(start, inbound=asked, images=media.images)
    return ReadQuestion(start, with_quote(with_text(inbound.text, media.kept), inbound))


def named_only(inbound: Inbound) -> str:
    """Give a message's text with its quote and the names of its attachments."""
    named = "\n".join(
        [
            NAMED.format(kind=each.kind.capitalize(), name=each.name)
            for each in inbound.attachments
        ]
    )
    return with_quote(
        with_text(inbound.text, named) if named else inbound.text, inbound
    )


def with_text(words: str, more: str) -> str:
    """Put the texts of attachments after the text of a message."""
    return "\n\n".join(part for part in (words.strip(), more) if part)
