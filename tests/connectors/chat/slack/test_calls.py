"""What Slack sends to the HTTP server: taken if it is Slack's, and nothing else is."""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping
from urllib.parse import urlencode

import pytest
import trio
import trio.testing
from slack_sdk.signature import SignatureVerifier
from trio.testing import MockClock

from connectors.chat.platforms import PlatformAnswer, PlatformCall, SignedGate
from connectors.chat.slack.listener import WINDOW, signed
from runtime.clock import SystemClock
from tests.fakes.slack.replies import Json, event_body, pressed
from tests.support.chat.slack_bed import ANNA, CREW, SIGNING, ZOE, SlackBed

PLACE = ("slack", "anna")


def post(
    body: bytes | Json,
    secret: str = SIGNING,
    ago: float = 0,
    more: Mapping[str, str] | None = None,
) -> PlatformCall:
    """Write a call as Slack does."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    timestamp = str(int(SystemClock().wall() - ago))
    headers = {
        "content-type": "application/json",
        "x-slack-request-timestamp": timestamp,
        "x-slack-signature": signed(secret, timestamp, raw),
    }
    return PlatformCall(headers={**headers, **(more or {})}, body=raw)


def hello(bed: SlackBed, text: str = "hello") -> Json:
    message = bed.slack.add(CREW, {"user": ZOE, "text": text})
    return event_body({**message, "channel": CREW}, bed.slack.new_id())


async def called(bed: SlackBed, call: PlatformCall) -> PlatformAnswer:
    gate = bed.gates.find(PLACE)
    if gate is None:
        return PlatformAnswer(401)  # as the server says
    assert isinstance(gate, SignedGate)
    answer = gate.check(call) if gate.lets_in(call.headers) else PlatformAnswer(401)
    return await gate.answer(call) if answer is None else answer


async def test_an_event_is_taken_once_however_often_it_comes() -> None:
    bed = SlackBed("anna", is_called=True)
    async with bed.listening():
        call = post(hello(bed))
        for _ in range(3):
            assert (await called(bed, call)).status == 200
        mention = json.loads(call.body)
        mention |= {"event": {**mention["event"], "type": "app_mention"}}
        assert (await called(bed, post(mention))).status == 200
    assert bed.texts() == ["hello"]


async def test_the_address_is_verified() -> None:
    bed = SlackBed("anna", is_called=True)
    async with bed.listening():
        body = {"type": "url_verification", "token": "t", "challenge": "3eZbrw"}
        answer = await called(bed, post(body))
        assert json.loads(answer.body) == {"challenge": "3eZbrw"}
        assert (await called(bed, post(body, "wrong"))).status == 401


def reencoded(call: PlatformCall) -> PlatformCall:
    body = json.dumps(json.loads(call.body), indent=1).encode()
    return PlatformCall(headers=call.headers, body=body)


def without(call: PlatformCall, header: str) -> PlatformCall:
    headers = {name: each for name, each in call.headers.items() if name != header}
    return PlatformCall(headers=headers, body=call.body)


def weaker(call: PlatformCall) -> str:
    basis = f"v0:{call.headers['x-slack-request-timestamp']}:".encode() + call.body
    return "v0=" + hmac.new(SIGNING.encode(), basis, "sha1").hexdigest()


@pytest.mark.parametrize(
    "wrong",
    [
        {"x-slack-signature": ""},
        {"x-slack-signature": "v0="},
        {"x-slack-signature": "v0=YOUR_SIGNATURE"},
        {"x-slack-signature": "v0=" + "0" * 64},
        {"x-slack-signature": "é" * 64},
        {"x-slack-request-timestamp": ""},
        {"x-slack-request-timestamp": "now"},
        {"x-slack-request-timestamp": "1e9"},
        {"x-slack-request-timestamp": "9" * 40},
    ],
)
async def test_without_the_right_signature_nothing_is_taken(
    wrong: Mapping[str, str],
) -> None:
    bed = SlackBed("anna", is_called=True)
    async with bed.listening():
        assert (await called(bed, post(hello(bed), more=wrong))).status == 401
        await trio.testing.wait_all_tasks_blocked()
    assert bed.texts() == []


async def test_stale_foreign_reencoded_and_other_schemes_are_refused() -> None:
    bed = SlackBed("anna", is_called=True)
    async with bed.listening():
        call = post(hello(bed))
        signature = call.headers["x-slack-signature"]
        for each in (
            post(hello(bed), ago=WINDOW + 5),
            post(hello(bed), ago=-WINDOW - 5),
            post(hello(bed), "another-apps-secret"),
            post(hello(bed), ""),
            reencoded(call),
            without(call, "x-slack-signature"),
            without(call, "x-slack-request-timestamp"),
            post(hello(bed), more={"x-slack-signature": weaker(call)}),
            post(hello(bed), more={"x-slack-signature": f"v1{signature[2:]}"}),
            post(hello(bed), more={"x-slack-signature": signature[3:]}),
        ):
            assert (await called(bed, each)).status == 401
        assert bed.gates.find(("slack", "nobody")) is None
    assert bed.texts() == []


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"\xff", b"7"])
async def test_what_is_signed_and_makes_no_sense_is_refused(body: bytes) -> None:
    bed = SlackBed("anna", is_called=True)
    async with bed.listening():
        assert (await called(bed, post(body))).status in {200, 400}
    assert bed.texts() == []


async def test_what_is_not_stored_in_time_comes_again(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = SlackBed("anna", is_called=True)
    async with bed.listening():
        bed.ingress.gate = trio.Event()
        call = post(hello(bed))
        before = trio.current_time()
        assert (await called(bed, call)).status == 503
        assert trio.current_time() - before < 3
        bed.ingress.gate.set()
        assert (await called(bed, call)).status == 200
    assert bed.texts() == ["hello"]


async def test_a_slash_command_comes_as_a_form() -> None:
    bed = SlackBed("anna", is_called=True)
    fields = {"command": "/callboard", "text": "help", "channel_id": CREW}
    fields |= {"user_id": ZOE, "trigger_id": "1.2.3", "user_name": "zoe"}
    body = urlencode(fields).encode()
    form = {"content-type": "application/x-www-form-urlencoded"}
    async with bed.listening():
        assert (await called(bed, post(body, more=form))).status == 200
    assert bed.texts() == ["/help"]


async def test_a_pressed_button_comes_as_a_form() -> None:
    bed = SlackBed("anna", is_called=True)
    message = {"ts": "1741234567.000100", "text": "may I?"}
    payload = pressed(message, CREW, ZOE, {"type": "button", "value": "deny:3F"})
    form = {"content-type": "application/x-www-form-urlencoded"}
    async with bed.listening():
        for said in (json.dumps(payload), "{", "[]", json.dumps({"type": "shortcut"})):
            body = urlencode({"payload": said}).encode()
            assert (await called(bed, post(body, more=form))).status in {200, 400}
    assert bed.texts() == ["/deny 3F"]


def test_slack_sdk_signs_and_checks_as_we_do() -> None:
    verifier = SignatureVerifier(SIGNING)
    body = '{"a": "ü"}'
    theirs = verifier.generate_signature(timestamp="1700000000", body=body)
    assert signed(SIGNING, "1700000000", body.encode()) == theirs


async def test_nobody_takes_calls_when_nobody_listens() -> None:
    bed = SlackBed("anna", is_called=True)
    async with bed.listening():
        assert bed.transport.trouble == ""
    assert (await called(bed, post(hello(bed)))).status == 401
    assert ANNA in bed.slack.apps


async def test_what_is_inside_while_the_listener_ends_comes_again() -> None:
    bed = SlackBed("anna", is_called=True)
    async with bed.listening():
        call, gate = post(hello(bed)), bed.gates.find(PLACE)
        assert isinstance(gate, SignedGate)
    assert await gate.answer(call) == PlatformAnswer(503)
    async with bed.listening():
        assert (await called(bed, call)).status == 200
    assert bed.texts() == ["hello"]
