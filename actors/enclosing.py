"""What goes out with an answer: files that its agent sends, each copied at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.carried import NOTHING, Carried
from actors.errors import ToolError
from actors.messages import SentFile, ToolResult
from actors.rules.actions import SendFile
from actors.rules.confirming import Outcome
from runtime.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Iterable

    from actors.file_ports import PictureWatch
    from actors.persona import Persona
    from actors.rules.actions import Action
    from actors.services import Services
    from actors.steps import Steps

LOG = EventLog("files")

# Chosen: what the platforms take as one album; more is a folder, for which there are
# archives.
MOST_FILES = 10
"""Files of one answer."""

TOO_MANY = f"one answer may bring {MOST_FILES} files"
NOT_ALLOWED = "this agent may not send files here without being asked"
NO_FILES = "files cannot be sent here"


class Sending(msgspec.Struct, frozen=True):
    """What one turn sends."""

    files: tuple[SentFile, ...] = ()
    """What its tools were told to send."""

    is_free: bool = False
    """Whether it may send more by marks in its text: whoever has to ask before the
    tool may run, or may not have it, has no way round."""


NOTHING_SENT = Sending()


async def enclose(
    wants: Iterable[Action], sending: Sending, persona: Persona, services: Services
) -> Carried:
    """Copy what marks in an answer name.

    Args:
        wants: all that the answer asks for; only files count.
        sending: what goes out already.
        persona: whose folder.
        services: who copies.
    """
    wanted = [each for each in wants if isinstance(each, SendFile)]
    if not wanted:
        return NOTHING
    files: list[SentFile] = []
    outcomes: list[Outcome] = []
    for each in wanted:
        try:
            is_full = len(files) + len(sending.files) >= MOST_FILES
            files.append(await _copy(each, sending, persona.name, services, is_full))
        except ToolError as error:
            refused = Outcome(kind="refused", what=each.path, why=str(error))
            outcomes.append(refused)
    return Carried(files=tuple(files), outcomes=tuple(outcomes))


async def _copy(
    wanted: SendFile,
    sending: Sending,
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


def with_files(carried: Carried, sending: Sending) -> Carried:
    """Put what tools were told to send before what the text names; each once."""
    if not (sending.files or carried.files):
        return carried
    each_once = dict.fromkeys((*sending.files, *carried.files))
    return msgspec.structs.replace(carried, files=tuple(each_once)[:MOST_FILES])


async def with_images(
    result: ToolResult, tool: str, persona: Persona, services: Services
) -> ToolResult:
    """Have a tool's pictures go out with the answer, if they are to.

    Args:
        result: what the tool gave back.
        tool: its name, which the files have, too.
        persona: says whether.
        services: who keeps them.
    """
    enclosures = services.enclosures
    is_on = persona.config.send_tool_images
    if enclosures is None or not (is_on and result.images):
        return result
    files: list[SentFile] = []
    for number, image in enumerate(result.images[:MOST_FILES], 1):
        try:
            files.append(await enclosures.enclose_image(image, f"{tool}-{number}"))
        except ToolError as error:
            LOG.warning("picture of a tool not sent", tool=tool, why=str(error))
    return msgspec.structs.replace(result, files=(*result.files, *files))


async def watch(persona: Persona, services: Services) -> PictureWatch | None:
    """Watch an agent's folder for new pictures, if they are to be sent (F280)."""
    enclosures = services.enclosures
    if enclosures is None or not persona.config.send_new_images:
        return None
    return await enclosures.watch(persona.name)


async def with_pictures(
    carried: Carried, pictures: PictureWatch | None, steps: Steps
) -> Carried:
    """Have new pictures go out, too; each file once, whoever sent it.

    Why recorded: they are removed from the folder then, and must not be lost with an
    answer that is cut off before it is stored.
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
    new = tuple(each for each in files if each.digest not in known)
    return msgspec.structs.replace(carried, files=(*carried.files, *new))
