"""Recordings over HTTP: written down, answered by an agent, and spoken.

Official servers and the official client ask differently, and both are answered as they
expect. Who sends `text` is given the recording itself (or, if `Accept` asks for JSON,
an object); who sends a file, or names a message, is given JSON with the recording in
base64. Of the client's wishes `voice` is heeded; language, speed and pitch are the
speaking model's own.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING
from uuid import uuid4

import msgspec
from starlette.responses import Response

from connectors.web.eliza.asked import SpeechAsked
from connectors.web.eliza.desk import ok
from connectors.web.eliza.errors import missing, wrong
from connectors.web.eliza.forms import is_form, read_file
from connectors.web.eliza.ids import ZERO, is_uuid
from connectors.web.eliza.memory_routes import agent_in
from connectors.web.eliza.shapes import Message
from connectors.web.eliza.speech import Posted, Said
from connectors.web.eliza.voices import Recording, Voices

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

    from connectors.web.eliza.desk import Call, Desk
    from connectors.web.eliza.keys import Caller
    from connectors.web.eliza.parts import Parts
    from connectors.web.eliza.shapes import Channel, Json

API = "/api/audio/{agent}"


class AudioRoutes:
    """What is asked about recordings.

    Args:
        parts: as of all routes.
    """

    def __init__(self, parts: Parts) -> None:
        self._channels = parts.channels
        self._memories = parts.memories
        self._speech = parts.speech
        self._awaiting = parts.awaiting
        self._voices = Voices(parts.backstage)
        self._limit = parts.config.max_upload_bytes

    def routes(self, desk: Desk) -> list[BaseRoute]:
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

    async def transcribe(self, call: Call) -> Response:
        """Give the words of a recording."""
        words, _ = await self._heard(call)
        return ok({"text": words})

    async def note(self, call: Call) -> Response:
        """Do the same, as official servers call it."""
        words, _ = await self._heard(call)
        return ok({"transcription": words, "message": "Audio transcribed"})

    async def speak(self, call: Call) -> Response:
        """Speak a text, or a message that was said."""
        asked = call.read(SpeechAsked)
        await self._need_agent(call)
        text, as_json = asked.text, wants_json(call)
        if asked.message_id is not None:
            text, as_json = (
                await call.ask(self._words_of, call.caller, asked.message_id.lower()),
                True,
            )
        spoken = await call.ask(self._voices.spoken, text, asked.voice)
        return ok(recording_shown(spoken)) if as_json else given(spoken)

    async def converse(self, call: Call) -> Response:
        """Say something to an agent, and have its answer spoken."""
        if is_form(call.request):
            return await self._answer_file(call, must_speak=True)
        asked = call.read(SpeechAsked)
        answer = await self._ask(call, asked.text, asked.room_id or "", asked)
        spoken = await call.ask(self._voices.spoken, answer)
        if wants_json(call):
            return ok(recording_shown(spoken) | {"text": answer})
        return given(spoken)

    async def hear(self, call: Call) -> Response:
        """Have an agent answer a recording: in words, and spoken if somebody can."""
        return await self._answer_file(call, must_speak=False)

    async def _answer_file(self, call: Call, *, must_speak: bool) -> Response:
        words, fields = await self._heard(call)
        if not words:
            raise wrong("nothing is said in the recording", "file")
        answer = await self._ask(call, words, room_in(fields), SpeechAsked())
        shown: Json = {"text": answer, "metadata": {"transcription": words}}
        if must_speak or await call.look(lambda: self._voices.can_speak):
            shown |= recording_shown(await call.ask(self._voices.spoken, answer))
        return ok(shown)

    async def _heard(self, call: Call) -> tuple[str, Json]:
        """Give the words of a form's recording, and what else the form says."""
        await self._need_agent(call)
        taken = await read_file(call, self._limit)
        if not taken.kind.startswith(("audio/", "video/")):
            raise wrong(f"of the type {taken.kind!r} is no recording", "file")
        words = await call.ask(self._voices.heard, taken.content, taken.kind)
        return words, metadata_in(taken.fields)

    async def _need_agent(self, call: Call) -> None:
        await call.look(self._channels.need_agent, agent_in(call))

    async def _ask(
        self, call: Call, text: str, room_id: str, asked: SpeechAsked
    ) -> str:
        """Say something to an agent; give its whole answer."""
        if not text.strip():
            raise wrong("is missing", "text")
        author, agent_id = call.author(asked.entity_id), agent_in(call)
        channel = await call.ask(self._room, call.caller, agent_id, author, room_id)
        message = Message(
            id=str(uuid4()),
            channel=channel.id,
            server=channel.server,
            author=author,
            author_name=asked.user_name or asked.name,
            content=text,
            source_type="speech",
            metadata={"targetAgentId": agent_id},
            at=0,
        )
        said = Said(message=message, inbound_id=self._awaiting.new_id())

        async def post() -> Posted:
            return await call.ask(self._speech.post, call.caller, said)

        _, answer = await self._awaiting.answer(call.request, said, post)
        return answer

    async def _room(
        self, caller: Caller, agent_id: str, author: str, room_id: str
    ) -> Channel:
        """Give the channel that is named, or that of the two."""
        if room_id:
            return self._memories.room(caller, agent_id, room_id.lower())
        self._channels.need_agent(agent_id)
        return await self._channels.direct(caller, author, agent_id, ZERO)

    async def _words_of(self, caller: Caller, message_id: str) -> str:
        """Give the words of a message that somebody may see.

        Raises:
            ApiError: 404, 403.
        """
        found = await self._speech.find(message_id)
        if found is None:
            raise missing("message", message_id)
        self._channels.channel(caller, found.channel)
        return found.content


def wants_json(call: Call) -> bool:
    """Whether a client asks for JSON."""
    return "application/json" in call.request.headers.get("accept", "")


def recording_shown(spoken: Recording) -> Json:
    """Show a recording in JSON."""
    audio = base64.b64encode(spoken.content).decode("ascii")
    return {"audio": audio, "format": spoken.format}


def given(spoken: Recording) -> Response:
    """Give a recording itself."""
    return Response(spoken.content, media_type=spoken.kind)


def metadata_in(fields: dict[str, str]) -> Json:
    """Read what a form says beside its file.

    Raises:
        ApiError: 400: it is no JSON object.
    """
    text = fields.get("metadata", "{}")
    try:
        found = msgspec.json.decode(text, type=dict[str, object])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise wrong("is no JSON object", "metadata") from None
    own: Json = {key: value for key, value in fields.items() if key != "metadata"}
    return found | own


def room_in(fields: Json) -> str:
    """Give the id of the room that is meant; empty: none is named.

    Raises:
        ApiError: 400: it is no UUID.
    """
    found = str(fields.get("roomId") or fields.get("channelId") or "")
    if found and not is_uuid(found):
        raise wrong(f"{found!r} is no UUID", "roomId")
    return found
