"""Proves that recordings are heard, answered and spoken, in both sides' shapes."""

from __future__ import annotations

import base64
from typing import Any

import trio

from actors.errors import ModelBusyError, ModelRefusedError
from connectors.web.eliza.platform import WebConfig
from tests.fakes.media import OGG, FakeSpeaker, FakeTranscriber
from tests.fakes.web.eliza import ANNA, SAM, ZOE, open_web

AUDIO = f"/api/audio/{ANNA}"
FILE = {"file": ("note.ogg", OGG, "audio/ogg")}
JSON = {"accept": "application/json"}
ZOES = {"X-Entity-Id": ZOE}


def spoken(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


async def test_a_recording_is_written_down() -> None:
    async with open_web(transcriber=FakeTranscriber(" good morning ")) as bed:
        found = await bed.ask("POST", f"{AUDIO}/transcriptions", files=FILE)
        assert found == {"text": "good morning"}
        found = await bed.ask("POST", f"{AUDIO}/audio-messages", files=FILE)
        assert found["transcription"] == "good morning"


async def test_without_anybody_for_it_clients_are_told_what_to_set() -> None:
    async with open_web() as bed:
        for path, rest, told in (
            ("transcriptions", {"files": FILE}, "[media.transcriber]"),
            ("speech", {"files": FILE}, "[media.transcriber]"),
            ("speech/generate", {"json": {"text": "x"}}, "[media.speaker]"),
        ):
            asked: dict[str, Any] = {**rest}
            response = await bed.client.post(f"{AUDIO}/{path}", **asked)
            assert response.status_code == 501
            assert told in response.json()["error"]["message"]


async def test_a_text_is_spoken_as_bytes_or_in_json() -> None:
    speaker = FakeSpeaker()
    async with open_web(speaker=speaker) as bed:
        asked = {"text": "hello", "voice": "nova"}
        path = f"{AUDIO}/speech/generate"
        response = await bed.client.post(path, json=asked)
        assert response.content == b"hello"
        assert response.headers["content-type"] == "audio/mpeg"
        assert speaker.asked == [("hello", "nova")]
        found = await bed.ask("POST", path, json=asked, headers=JSON)
        assert found == {"audio": spoken("hello"), "format": "mp3"}
        for bad in ({}, {"text": " "}, {"text": "x" * 101}, {"text": "x", "voice": 7}):
            assert (await bed.refused("POST", path, json=bad))[0] == 400


async def test_a_message_is_spoken_by_its_id_or_its_text() -> None:
    async with open_web(speaker=FakeSpeaker()) as bed:
        channel = await bed.channel(ZOE, ANNA)
        said = await bed.say(channel, "words of mine")
        path = f"{AUDIO}/audio-messages/synthesize"
        by_client = await bed.ask("POST", path, json={"messageId": said["id"]})
        assert by_client == {"audio": spoken("words of mine"), "format": "mp3"}
        by_server = await bed.client.post(path, json={"text": "hello"})
        assert by_server.content == b"hello"
        refused = await bed.refused("POST", path, json={"messageId": ANNA})
        assert refused == (404, "MESSAGE_NOT_FOUND")


async def test_an_agent_answers_what_it_is_told() -> None:
    voices: dict[str, Any] = {
        "speaker": FakeSpeaker(),
        "transcriber": FakeTranscriber("hello"),
    }
    async with open_web(**voices) as bed, trio.open_nursery() as nursery:
        nursery.start_soon(bed.answer_all)
        path = f"{AUDIO}/speech/conversation"
        both = await bed.ask("POST", path, files=FILE, headers=ZOES)
        assert both["text"] == "you said: hello"
        assert both["audio"] == spoken("you said: hello")
        assert both["metadata"] == {"transcription": "hello"}
        asked = {"text": "again", "entityId": SAM, "userName": "Sam"}
        response = await bed.client.post(path, json=asked)
        assert response.content == b"you said: again"
        channel = await bed.channel(ZOE, ANNA)
        form = {"metadata": f'{{"roomId": "{channel}"}}'}
        heard = await bed.ask(
            "POST", f"{AUDIO}/speech", files=FILE, data=form, headers=ZOES
        )
        assert heard["text"] == "you said: hello"
        assert [each["content"] for each in await bed.messages(channel)] == [
            "you said: hello",
            "hello",
        ]
        nursery.cancel_scope.cancel()


async def test_an_answer_is_given_in_words_where_nobody_speaks() -> None:
    transcriber = FakeTranscriber("hello")
    async with open_web(transcriber=transcriber) as bed:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(bed.answer_all)
            heard = await bed.ask("POST", f"{AUDIO}/speech", files=FILE, headers=ZOES)
            nursery.cancel_scope.cancel()
        assert (heard["text"], "audio" in heard) == ("you said: hello", False)


async def test_what_a_model_says_of_its_trouble_reaches_the_client() -> None:
    for error, expected in (
        (ModelBusyError("busy"), (503, "MODEL_UNAVAILABLE")),
        (ModelRefusedError("no"), (502, "MODEL_REFUSED")),
    ):
        async with open_web(transcriber=FakeTranscriber(error)) as bed:
            path = f"{AUDIO}/transcriptions"
            assert await bed.refused("POST", path, files=FILE) == expected


async def test_what_is_no_recording_is_refused() -> None:
    config = WebConfig(port=0, max_upload_bytes=50)
    async with open_web(config, transcriber=FakeTranscriber("x")) as bed:
        path = f"{AUDIO}/transcriptions"
        for rest, expected in (
            ({"files": {"file": ("a.png", b"x", "image/png")}}, 400),
            ({"files": {"other": ("a.ogg", OGG, "audio/ogg")}}, 400),
            ({"data": {"file": "a path"}}, 400),
            ({"json": {"file": "x"}}, 400),
            ({"files": {"file": ("a.ogg", b"x" * 51, "audio/ogg")}}, 413),
            ({"files": FILE, "data": {"metadata": "no json"}}, 400),
        ):
            asked: dict[str, Any] = {**rest}
            assert (await bed.refused("POST", path, **asked))[0] == expected
        other = f"/api/audio/{ZOE}/transcriptions"
        refused = await bed.refused("POST", other, files=FILE)
        assert refused == (404, "AGENT_NOT_FOUND")
