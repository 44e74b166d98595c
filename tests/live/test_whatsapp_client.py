"""Proves that the Graph API of the tests is one: pywa 4.5.0 lives with it.

The library runs in an environment of its own (`setup_whatsapp.sh`) against the server
that all tests of the connector use, and reads the webhooks that these write. Neither
does the connector know another WhatsApp: what the one sends is what the other sends.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import trio

from connectors.chat.whatsapp import events, markup
from tests.fakes.whatsapp.graph import SECRET, VERSION, FakeGraph, sign
from tests.fakes.whatsapp.server import open_graph
from tests.processes.running import ROOT
from tests.support.chat.whatsapp_bed import ANNA, ROY, TOKEN, ZOE

pytestmark = pytest.mark.live

PYTHON = ROOT / ".live" / "whatsapp" / "bin" / "python"
NOW = 1_700_000_010.0
TEXTS = ("one", "two", "three")

SCRIPT = r"""
import json, sys
import httpx, pywa
from pywa.errors import WhatsAppError

given = json.loads(open(sys.argv[1], encoding="utf-8").read())
there = httpx.URL(given["url"])

def lead_here(request):
    request.url = request.url.copy_with(scheme="http", host=there.host, port=there.port)

def client(token):
    session = httpx.Client(event_hooks={"request": [lead_here]}, timeout=10)
    return pywa.WhatsApp(
        phone_id=given["number"], token=token, session=session, server=None,
        api_version=float(given["version"].removeprefix("v")),
        app_secret=given["secret"], verify_token=given["word"],
    )

def named(what, *args, **more):
    try:
        what(*args, **more)
    except WhatsAppError as error:
        return type(error).__name__
    return None

def speak(wa, found):
    for person in given["people"]:
        sent = wa.send_message(person, "hi", reply_to_message_id="wamid.1", tracker="t")
        found["sent"].append(sent.id)
    wa.send_reaction(given["people"][0], "\U0001f44d", "wamid.1")
    wa.mark_message_as_read("wamid.1")
    wa.indicate_typing("wamid.1")
    media = wa.get_media_url("m1")
    found["media"] = [media.mime_type, media.file_size, media.get_bytes().hex()]
    hooks = wa.get_business_phone_number().webhook_configuration
    found["hooks"] = hooks
    found["closed"] = named(wa.send_message, "491703", "hi")
    found["gone"] = named(
        wa.send_message, "491701", "hi", reply_to_message_id="wamid.gone"
    )
    found["stranger"] = named(client("nobody's").send_message, "491701", "hi")

def hear(wa, found):
    wa.on_message()(lambda _, m: found["heard"].append(
        [m.id, m.text, m.from_user.name, m.from_user.wa_id, m.from_user.bsuid]
    ))
    wa.on_message_status()(lambda _, s: found["statuses"].append(
        [s.id, s.tracker, s.error.code]
    ))
    for body, signature, wrong in given["calls"]:
        raw = body.encode()
        found["right"].append(wa.webhook_update_validator(raw, signature) is None)
        found["wrong"].append(wa.webhook_update_validator(raw, wrong)[1])
        wa.webhook_update_handler(raw)
    found["greeted"] = wa.webhook_challenge_handler(given["word"], "1158201444")[:2]

found = {key: [] for key in ("sent", "heard", "statuses", "right", "wrong")}
wa = client(given["token"])
speak(wa, found)
hear(wa, found)
print(json.dumps(found))
"""


def calls(graph: FakeGraph) -> list[bytes]:
    """Write webhooks: a message, several in one, and what became of one of ours."""
    one = graph.message("grüß dich", ZOE, from_user_id=ROY)
    more = [graph.message(text, ZOE, from_user_id=ROY) for text in TEXTS]
    sent = {"id": "wamid.9", "to": ZOE, "biz_opaque_callback_data": "t"}
    told = json.loads(
        graph.webhook(ANNA, statuses=(graph.status(sent, "failed", 131047),))
    )
    # pywa finds the person of a status among the contacts.
    value = told["entry"][0]["changes"][0]["value"]
    value["contacts"] = [{"wa_id": ZOE, "user_id": ROY, "profile": {"name": "Roy"}}]
    return [
        graph.webhook(ANNA, one, name="Roy"),
        graph.webhook(ANNA, *more, name="Roy"),
        json.dumps(told).encode(),
    ]


async def asked(graph: FakeGraph, webhooks: list[bytes], folder: Path) -> Any:
    """Have pywa do all that it is asked; gives what it found."""
    assert PYTHON.exists(), "run tests/live/setup.sh first"
    script = folder / "client.py"
    script.write_text(SCRIPT, encoding="utf-8")
    given: dict[str, Any] = {
        "number": ANNA,
        "token": graph.number(ANNA),
        "version": VERSION,
        "secret": SECRET,
        "word": TOKEN,
        "people": [ZOE, ROY],
        "calls": [(body.decode(), sign(body), sign(b"x")) for body in webhooks],
    }
    async with open_graph(graph) as url:
        path = folder / "given.json"
        path.write_text(json.dumps({**given, "url": url}), encoding="utf-8")
        command = [str(PYTHON), str(script), str(path)]
        with trio.fail_after(60):
            done = await trio.run_process(command, capture_stdout=True)
    return json.loads(done.stdout.decode().splitlines()[-1])


def bare(body: dict[str, Any]) -> dict[str, Any]:
    """Give what a client sent, without what the fake added."""
    return {key: each for key, each in body.items() if key not in {"number", "id"}}


async def test_a_client_that_nobody_here_wrote_lives_with_the_fake(
    tmp_path: Path,
) -> None:
    graph = FakeGraph()
    graph.put_media("m1", "image/png", b"\x89PNG")
    graph.hooks[ANNA] = {"application": "https://bots.test/platforms/whatsapp"}
    graph.closed.add("491703")
    graph.gone.add("wamid.gone")
    found = await asked(graph, calls(graph), tmp_path)
    assert found["sent"] == [each["id"] for each in graph.said[:2]]
    assert found["media"] == ["image/png", 4, "89504e47"]
    assert found["hooks"] == graph.hooks[ANNA]
    refused = [found[name] for name in ("closed", "gone", "stranger")]
    assert refused == ["ReEngagementMessage", "InvalidParameter", "ExpiredAccessToken"]
    for person, theirs in zip((ZOE, ROY), map(bare, graph.said), strict=False):
        theirs["text"] = {"preview_url": False} | theirs["text"]
        assert theirs == markup.message(person, "hi", "t", "wamid.1")
    ours = markup.reaction(ZOE, "wamid.1", "👍")
    assert {key: graph.said[2][key] for key in ours} == ours
    assert list(map(bare, graph.read)) == [
        markup.read("wamid.1"),
        markup.read("wamid.1", is_typing=True),
    ]


async def test_both_take_our_webhooks_for_metas(tmp_path: Path) -> None:
    graph = FakeGraph()
    graph.put_media("m1", "image/png", b"\x89PNG")
    webhooks = calls(graph)
    found = await asked(graph, webhooks, tmp_path)
    assert (found["right"], found["wrong"]) == ([True] * 3, [403] * 3)
    assert found["greeted"] == ["1158201444", 200]
    read = [events.read_news(body, {ANNA: "anna"}, NOW) for body in webhooks]
    ours = [
        [each.id, each.text, each.sender_name, each.phone, each.sender]
        for news in read
        for each in news.heard
    ]
    assert [each[1] for each in ours] == ["grüß dich", *TEXTS]
    # pywa keeps one message of each webhook; should it learn to keep all, say so here.
    assert found["heard"] == ours[:2]
    (status,) = read[2].statuses
    assert found["statuses"] == [[status.id, status.marker, status.code]]
    assert status.code == 131047
