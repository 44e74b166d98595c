"""Recordings become words and words recordings, for clients; on the kernel's side.

By whoever the settings have for it (`[media.transcriber]`, `[media.speaker]`); without
them clients are told what is to be set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.errors import ModelBusyError, ModelRefusedError
from connectors.web.eliza.errors import wrong
from connectors.web.errors import ApiError

if TYPE_CHECKING:
    from actors.ports import Speaker, Transcriber
    from connectors.web.backstage import Backstage

FORMATS = {
    "audio/mpeg": "mp3",
    "audio/ogg": "ogg",
    "audio/aac": "aac",
    "audio/flac": "flac",
    "audio/wav": "wav",
}
"""What clients call the kinds of recordings."""


class Recording(msgspec.Struct, frozen=True):
    """Something that was spoken."""

    kind: str
    """As in `audio/mpeg`."""

    content: bytes

    @property
    def format(self) -> str:
        """What clients call it."""
        return FORMATS.get(self.kind, self.kind.rpartition("/")[2])


class Voices:
    """Has it done.

    Args:
        backstage: whoever does it.
    """

    def __init__(self, backstage: Backstage) -> None:
        self._backstage = backstage

    @property
    def can_speak(self) -> bool:
        """Whether there is somebody to speak."""
        return self._backstage.voice().speaker is not None

    async def heard(self, content: bytes, kind: str) -> str:
        """Give the words of a recording; empty: nobody speaks.

        Raises:
            ApiError: nobody writes recordings down, or not now, or not this one.
        """
        transcriber: Transcriber | None = self._backstage.voice().transcriber
        if transcriber is None:
            text = "nobody writes recordings down here: set [media.transcriber]"
            raise ApiError(501, text, code="no_transcriber", may_repeat=False)
        try:
            return (await transcriber.transcribe(content, kind)).strip()
        except (ModelBusyError, ModelRefusedError) as error:
            raise of_model(error) from error

    async def spoken(self, text: str, voice: str = "") -> Recording:
        """Give a recording of a text.

        Raises:
            ApiError: nobody speaks, or not now, or not this text.
        """
        speaker: Speaker | None = self._backstage.voice().speaker
        if speaker is None:
            told = "nobody speaks here: set [media.speaker]"
            raise ApiError(501, told, code="no_speaker", may_repeat=False)
        if not text.strip():
            raise wrong("has no words", "text")
        if len(text) > speaker.max_chars:
            raise wrong(f"is longer than {speaker.max_chars} characters", "text")
        try:
            return Recording(speaker.media_type, await speaker.speak(text, voice))
        except (ModelBusyError, ModelRefusedError) as error:
            raise of_model(error) from error


def of_model(error: ModelBusyError | ModelRefusedError) -> ApiError:
    """Say to a client why there is no recording, or are no words."""
    if isinstance(error, ModelBusyError):
        wait = 5.0 if error.retry_after is None else error.retry_after
        return ApiError(503, str(error), code="model_unavailable", retry_after=wait)
    return ApiError(502, str(error), code="model_refused", may_repeat=False)
