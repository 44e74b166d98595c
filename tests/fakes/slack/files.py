"""Files that apps bring to a `FakeSlack`: seen by nobody until they are shared."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.fakes.slack.replies import NOT_FOUND, Json, Reply, ok, refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.fakes.slack.workspace import App, FakeSlack

BASE = "https://files.slack.com/upload/v1"


@dataclass
class Upload:
    """One file that is on its way."""

    app: App
    name: str
    length: int
    content: bytes | None = None
    """None: its bytes have not come."""

    channel: str = ""
    ts: str = ""
    """Of the message that shares it; both empty: nobody sees it."""


class SlackFiles:
    """The files of a workspace.

    Args:
        slack: the workspace.
    """

    def __init__(self, slack: FakeSlack) -> None:
        self._slack = slack
        self.base = BASE
        """Where bytes are taken."""

        self.uploads: dict[str, Upload] = {}
        """By the file's id."""

        self.faults: deque[int | Exception] = deque()
        """What the next bytes get instead: a status, or nothing."""

        self.is_slow = False
        """Whether what is shared is not seen yet when that is answered."""

        self._late: list[tuple[str, Json]] = []

    @property
    def brought(self) -> list[tuple[str, bytes]]:
        """Give the names and bytes of the files that people see, in order."""
        seen = [each for each in self.uploads.values() if each.ts]
        return [(each.name, each.content or b"") for each in seen]

    def offer(self, app: App, form: Mapping[str, str]) -> Reply:
        """Give an address for bytes."""
        if not form.get("filename") or int(form["length"]) <= 0:
            return refusal("invalid_arguments")
        file = f"F{self._slack.new_id().upper()}"
        self.uploads[file] = Upload(app, form["filename"], int(form["length"]))
        return ok({"upload_url": f"{self.base}/{file}", "file_id": file})

    def take(self, file: str, content: bytes) -> int:
        """Take the bytes that come to an address; gives the status of HTTP.

        Raises:
            Exception: a fault that was ordered.
        """
        if self.faults:
            fault = self.faults.popleft()
            if isinstance(fault, Exception):
                raise fault
            return fault
        upload = self.uploads.get(file)
        if upload is None or upload.length != len(content):
            return 400
        upload.content = content
        return 200

    def share(self, app: App, form: Mapping[str, str]) -> Reply:
        """Have files seen in a channel."""
        channel = form["channel_id"]
        if app.user not in self._slack.members.get(channel, []):
            return refusal(NOT_FOUND)
        (said,) = json.loads(form["files"])
        upload = self.uploads.get(said["id"])
        if upload is None or upload.app is not app or upload.content is None:
            return refusal("file_not_found")
        if upload.channel:
            return refusal("file_already_shared")
        upload.channel = channel
        shown = {"id": said["id"], "name": upload.name, "size": upload.length}
        message: Json = {
            "subtype": "file_share",
            "user": app.user,
            "bot_id": app.bot,
            "text": form.get("initial_comment", ""),
            "files": [{**shown, "title": said["title"]}],
        }
        if form.get("thread_ts"):
            message["thread_ts"] = form["thread_ts"]
        self._late.append((channel, message))
        if not self.is_slow:
            self.settle()
        return ok({"files": [{"id": said["id"], "title": said["title"]}]})

    def settle(self) -> None:
        """Have all that is shared seen."""
        late, self._late = self._late, []
        for channel, each in late:
            message = self._slack.add(channel, each)
            for file in each["files"]:
                self.uploads[file["id"]].ts = message["ts"]
            self._slack.tell(channel, message)

    def tell(self, app: App, form: Mapping[str, str]) -> Reply:
        """Say what is known of a file."""
        upload = self.uploads.get(form["file"])
        if upload is None or upload.app is not app:
            return refusal("file_not_found")
        kind = "private" if upload.channel.startswith("D") else "public"
        shares = {kind: {upload.channel: [{"ts": upload.ts}]}} if upload.ts else {}
        return ok({"file": {"id": form["file"], "shares": shares}})
