"""Files that come with messages, and those that agents send."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import trio

from actors.messages.inbound import Attachment, SentFile
from actors.rules.text.limits import RecentMap
from connectors.chat.errors import BusyError, LostError, PlatformError
from connectors.chat.lenient_json import Json, table, tables, text
from connectors.chat.requests import until_answered
from connectors.chat.slack import senders as reconciling
from connectors.chat.slack.content import shared
from connectors.chat.slack.events import SlackFile, is_ts, message_id
from connectors.files.blobs import BlobFolder, bytes_of
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from actors.messages.deliveries import Delivery
    from connectors.chat.slack.account import SlackAccount

# Chosen: a moment's trouble costs nobody a file, and a longer one holds a message, and
# all that follows it in its channel, back for no longer than this.
TRIED_WITHIN = 20.0
"""Seconds after which no further try is begun; one try may take longer by itself."""


async def fetch_file(
    file: SlackFile, account: SlackAccount, most: int
) -> tuple[Attachment | None, str]:
    """Fetch a file; a server that has too much to do is asked again for a while.

    Args:
        file: which.
        account: who may have it.
        most: bytes.

    Returns:
        The attachment, or why there is none.
    """
    if not file.url:
        return None, "Slack does not have it"
    if file.size > most:
        return None, f"it is above {most} bytes"
    try:
        content, media_type = await until_answered(
            partial(account.fetch, file.url, most), lambda _: None, TRIED_WITHIN
        )
    except PlatformError as error:
        return None, str(error)
    if media_type == "text/html" and file.media_type != "text/html":
        # Why: without the scope, Slack answers with the page of its login.
        return None, "the app may not: give it the scope files:read"
    return (
        Attachment(
            kind=file.kind,
            name=file.name,
            media_type=file.media_type or media_type,
            content=content,
        ),
        "",
    )


LOG = EventLog("slack")

WAITS = (0.0, 0.5, 1.0, 2.0)
"""Seconds before each time that Slack is asked for the message of a file."""

# Chosen: Slack names no time; people see files within seconds.
SETTLES = 30.0
"""Seconds after which a file that is not in the history was not shared."""

MOST_ASKED = 200
"""Deliveries of which it is remembered when they were to be shared."""


class SlackUploads:
    """Uploads files to one workspace.

    Args:
        blobs: has the bytes; None: nobody has.
    """

    def __init__(self, blobs: BlobFolder | None) -> None:
        self._blobs = blobs
        self._asked: RecentMap[str, float] = RecentMap(MOST_ASKED)

    async def say(
        self, delivery: Delivery, file: SentFile, words: str, account: SlackAccount
    ) -> str:
        """Share a delivery's file in its channel or thread.

        Args:
            delivery: which.
            file: what it brings.
            words: what is said of it; may be empty.
            account: by whose app.

        Returns:
            The message's id; where Slack does not tell it soon, the file's in its
            place, which no edit and no sign finds.

        Raises:
            DeliveryRefusedError: its bytes are gone.
            PlatformError: `LostError` only if it may have been shared.
        """
        path = bytes_of(self._blobs, file)
        try:
            known = await bring(file, path, account)
        except LostError as error:
            raise BusyError(f"the file was not brought to Slack: {error}") from error
        self._note(delivery.id)
        body = shared(delivery, words, known, file.name)
        await account.ask("files.completeUploadExternal", body)
        channel = delivery.address.chat
        return message_id(channel, await moment(known, channel, account) or known)

    async def find(
        self, delivery: Delivery, account: SlackAccount, others: Collection[str]
    ) -> str | None:
        """Look for a file in its channel or thread.

        One that the same app shared there shortly before, with the same title and
        size, is taken for it, unless it is known to be another: the person has it.

        Raises:
            BusyError: it is not there, and may still come.
            PlatformError: it cannot be looked for.
        """
        is_it = partial(brings, delivery, account, others)
        found = await reconciling.find(delivery, account, is_it)
        if found is not None:
            return found
        since = self._asked.get(delivery.id)
        if since is None:  # as after a restart
            since = self._note(delivery.id)
        left = since + SETTLES - trio.current_time()
        if left > 0:
            raise BusyError("Slack may still be sharing the file", left)
        return None

    def _note(self, delivery_id: str) -> float:
        now = self._asked[delivery_id] = trio.current_time()
        return now


async def bring(file: SentFile, path: Path, account: SlackAccount) -> str:
    """Bring a file's bytes to Slack, where nobody sees them yet; gives its id there.

    Raises:
        PlatformError: it is not there.
    """
    asked = {"filename": file.name, "length": file.size}
    answer = await account.ask("files.getUploadURLExternal", asked)
    url, known = text(answer.get("upload_url")), text(answer.get("file_id"))
    if not url or not known:
        raise LostError("Slack gave no address for the file")
    await account.put(url, path, file.size)
    return known


async def moment(file: str, channel: str, account: SlackAccount) -> str:
    """Ask for the `ts` of the message that shares a file; empty: not known (yet)."""
    for wait in WAITS:
        await trio.sleep(wait)
        try:
            answer = await account.ask("files.info", {"file": file})
        except PlatformError as error:
            LOG.warning("message of a file not known", file=file, why=str(error))
            return ""
        shares = table(table(answer.get("file")).get("shares"))
        for kind in ("public", "private"):
            for each in tables(table(shares.get(kind)).get(channel)):
                if is_ts(text(each.get("ts"))):
                    return text(each.get("ts"))
    return ""


def brings(
    delivery: Delivery, account: SlackAccount, others: Collection[str], shown: Json
) -> bool:
    """Return whether a message is the one that shares a delivery's file."""
    file, channel = delivery.file, delivery.address.chat
    by_it = account.user == text(shown.get("user"))
    by_it = by_it or account.bot == text(shown.get("bot_id"))
    if file is None or not by_it:
        return False
    names = [text(shown.get("ts"))]
    found = False
    for each in tables(shown.get("files")):
        names.append(text(each.get("id")))
        is_same = text(each.get("title")) == file.name
        found = found or (is_same and each.get("size", file.size) == file.size)
    return found and not any(message_id(channel, name) in others for name in names)
