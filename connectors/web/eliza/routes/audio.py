"""Recordings over HTTP: transcribed, answered by an agent, and spoken.

The models are `[media.transcriber]` and `[media.speaker]` of the settings. A request
with `text` gets the recording itself (with `Accept: application/json` an object); one
with a file or a message's id gets JSON with the recording in base64, as the official
server and client expect. `voice` is honoured; language, speed and pitch are not.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import msgspec
from msgspec import structs
from starlette.responses import Response

from actors.errors import ModelBusyError, ModelRefusedError
from connectors.web.eliza.messages import Json, is_uuid, missing, to_agent, wrong
from connectors.web.eliza.request import (
    ElizaCall,
    ElizaRoutes,
    SpeechBody,
    is_form,
    ok,
    read_file,
)
from connectors.web.server import ApiError

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

    from actors.ports import Speaker, Transcriber
    from connectors.chat.platforms import Backstage
    from connectors.web.eliza.app import ElizaServices
    from connectors.web.eliza.keys import ApiCaller
    from connectors.web.eliza.services.messages import PostOutcome


FORMATS = {
    "audio/mpeg": "mp3",
    "audio/ogg": "ogg",
    "audio/aac": "aac",
    "audio/flac": "flac",
    "audio/wav": "wav",
}
"""Names of the media types in the API."""


class Recording(msgspec.Struct, frozen=True):
    """A spoken text."""

    kind: str
    """As in `audio/mpeg`."""

    content: bytes

    @property
    def format(self) -> str:
        """Its name in the API."""
        return FORMATS.get(self.kind, self.kind.rpartition("/")[2])


class VoiceService:
    """Transcribes recordings and speaks texts; on the kernel's side."""

    def __init__(self, backstage: Backstage) -> None:
        self._backstage = backstage

    @property
    def can_speak(self) -> bool:
        """Whether a speaking model is set."""
        return self._backstage.voice().speaker is not None

    async def heard(self, content: bytes, kind: str) -> str:
        """Give the words of a recording; empty: there are none.

        Raises:
            ApiError: no model is set, or it is busy, or refuses the recording.
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
            ApiError: no model is set, or it is busy, or refuses the text.
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
    """Make the error for a model that is busy or refuses."""
    if isinstance(error, ModelBusyError):
        wait = 5.0 if error.retry_after is None else error.retry_after
        return ApiError(503, str(error), code="model_unavailable", retry_after=wait)
    return ApiError(502, str(error), code="model_refused", may_repeat=False)


API = "/api/audio/{agent}"


class AudioRoutes:
    """Routes that transcribe, answer and speak."""

    def __init__(self, services: ElizaServices) -> None:
        self._channels = services.channels
        self._memories = services.memories
        self._messages = services.messages
        self._answers = services.answers
        self._incoming = services.incoming
        self._voices = VoiceService(services.backstage)
        self._limit = services.config.max_upload_bytes

    def routes(self, desk: ElizaRoutes) -> list[BaseRoute]:
        """Give the routes."""
        talk = f"{API}/speech/conversation"
        audio, spoken = f"{API}/audio-messages", f"{API}/audio-messages/synthesize"
        words = f"{API}/transcriptions"
        return [
            desk.route("POST", words, "write", self.transcribe, takes_files=True),
            desk.route("POST", f"{API}/speech/generate", "write", self.speak),
            desk.route("POST", spoken, "write", self.speak),
            desk.route("POST", talk, "write", self.converse, takes_files=True),
            desk.route("POST", f"{API}/speech", "write", self.hear, takes_files=True),
            desk.route("POST", audio, "write", self.note, takes_files=True),
        ]

    async def transcribe(self, call: ElizaCall) -> Response:
        """Give the words of a recording."""
        words, _ = await self._heard(call)
        return ok({"text": words})

    async def note(self, call: ElizaCall) -> Response:
        """Give the words of a recording, in the shape of official servers."""
        words, _ = await self._heard(call)
        return ok({"transcription": words, "message": "Audio transcribed"})

    async def speak(self, call: ElizaCall) -> Response:
        """Speak a text, or a message."""
        asked = call.read(SpeechBody)
        await self._need_agent(call)
        text, as_json = asked.text, wants_json(call)
        if asked.message_id is not None:
            text, as_json = (
                await call.ask(self._words_of, call.caller, asked.message_id.lower()),
                True,
            )
        spoken = await call.ask(self._voices.spoken, text, asked.voice)
        return ok(recording_shown(spoken)) if as_json else given(spoken)

    async def converse(self, call: ElizaCall) -> Response:
        """Send a text or a recording to an agent, and speak its answer."""
        if is_form(call.request):
            return await self._answer_file(call, must_speak=True)
        asked = call.read(SpeechBody)
        answer = await self._ask(call, asked.text, asked.room_id or "", asked)
        spoken = await call.ask(self._voices.spoken, answer)
        if wants_json(call):
            return ok(recording_shown(spoken) | {"text": answer})
        return given(spoken)

    async def hear(self, call: ElizaCall) -> Response:
        """Send a recording to an agent; the answer is spoken if a model is set."""
        return await self._answer_file(call, must_speak=False)

    async def _answer_file(self, call: ElizaCall, *, must_speak: bool) -> Response:
        words, fields = await self._heard(call)
        if not words:
            raise wrong("nothing is said in the recording", "file")
        answer = await self._ask(call, words, room_in(fields), SpeechBody())
        shown: Json = {"text": answer, "metadata": {"transcription": words}}
        if must_speak or await call.look(lambda: self._voices.can_speak):
            shown |= recording_shown(await call.ask(self._voices.spoken, answer))
        return ok(shown)

    async def _heard(self, call: ElizaCall) -> tuple[str, Json]:
        """Give the words of a form's recording, and the form's other fields."""
        await self._need_agent(call)
        taken = await read_file(call, self._limit)
        if not taken.kind.startswith(("audio/", "video/")):
            raise wrong(f"of the type {taken.kind!r} is no recording", "file")
        words = await call.ask(self._voices.heard, taken.content, taken.kind)
        return words, metadata_in(taken.fields)

    async def _need_agent(self, call: ElizaCall) -> None:
        await call.look(self._channels.need_agent, call.agent())

    async def _ask(
        self, call: ElizaCall, text: str, room_id: str, asked: SpeechBody
    ) -> str:
        """Send a text to an agent; give its whole answer."""
        if not text.strip():
            raise wrong("is missing", "text")
        author, agent_id = call.author(asked.entity_id), call.agent()
        find = self._memories.room_or_direct
        channel = await call.ask(find, call.caller, agent_id, author, room_id)
        name = asked.user_name or asked.name
        message = to_agent(channel, agent_id, author, name, text)
        said = await self._incoming(structs.replace(message, source_type="speech"))

        async def post() -> PostOutcome:
            return await call.ask(self._messages.post, call.caller, said)

        _, exchange = await self._answers.answer(call.request, said, post)
        return exchange.text

    async def _words_of(self, caller: ApiCaller, message_id: str) -> str:
        """Give the text of a message that the caller may see."""
        found = await self._messages.find(message_id)
        if found is None:
            raise missing("message", message_id)
        self._channels.channel(caller, found.channel)
        return found.content


def wants_json(call: ElizaCall) -> bool:
    """Whether the client wants JSON."""
    return "application/json" in call.request.headers.get("accept", "")


def recording_shown(spoken: Recording) -> Json:
    """Show a recording in JSON."""
    audio = base64.b64encode(spoken.content).decode("ascii")
    return {"audio": audio, "format": spoken.format}


def given(spoken: Recording) -> Response:
    """Answer with a recording itself."""
    return Response(spoken.content, media_type=spoken.kind)


def metadata_in(fields: dict[str, str]) -> Json:
    """Read the fields of a form beside its file.

    Raises:
        ApiError: 400: `metadata` is not a JSON object.
    """
    text = fields.get("metadata", "{}")
    try:
        found = msgspec.json.decode(text, type=dict[str, object])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise wrong("is no JSON object", "metadata") from None
    own: Json = {key: value for key, value in fields.items() if key != "metadata"}
    return found | own


def room_in(fields: Json) -> str:
    """Give the id of the room in a form; empty: none.

    Raises:
        ApiError: 400: it is not a UUID.
    """
    found = str(fields.get("roomId") or fields.get("channelId") or "")
    if found and not is_uuid(found):
        raise wrong(f"{found!r} is no UUID", "roomId")
    return found
