"""Proves that one node shows and reaches all others, and names who is silent."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec
import pytest
import trio
from hypothesis import given, strategies as st
from msgspec.structs import replace as with_fields

from actors import names
from actors.approvals.board import DecideQuestion, QuestionAsked, ReadQuestions
from actors.approvals.permissions import OpenApproval
from actors.journal.records import AUDIT, usage_of_check
from actors.messages.inbound import Address, Inbound
from actors.messages.usage import Run
from actors.models.limiter import IsWorking
from connectors.admin.nodes import (
    ENDED,
    GONE,
    NO_ACTORS,
    NO_WAY,
    PATH,
    QUESTION,
    RUNS,
    STANDS_BY,
    ActByHand,
    ListedNode,
    NodeCircle,
    NodeQuestion,
    NodeReport,
    NodeWay,
    ReadActors,
    ReadReport,
    ShowTree,
    is_sealed,
    seal_of,
    unreadable,
    ways_to,
)
from connectors.admin.tree import Forest
from connectors.admin.usage import Sample, Trends
from connectors.app.inspection import MISDIRECTED, NodeAnswers, write_tree
from connectors.chat.platforms import NodeQuestions
from connectors.commands.status import show_nodes
from connectors.web.page.views import actors, overview, queue
from connectors.web.page.views.base import Refusal, ViewRequest, ViewSources, look_of
from runtime.errors import MisuseError
from runtime.nodes.rows import ACCOUNT, COMPANY, PART, LeaseRow
from runtime.postgresql.nodes import KnownNode, NodeCard
from runtime.store.rows import Commit, Record
from tests.support.desk import WAITING
from tests.support.panel_bed import PanelBed, open_panels

KEY = bytes(32)
PATIENCE = 30.0
QUICKLY = 0.1
"""Seconds after which a node is given up that never answers."""


def listed(name: str, state: str = "works on its parts") -> ListedNode:
    return ListedNode(name, state, 128, (), "m", 1, "127.0.0.1", "0.1.0")


def way(name: str, *ports: int, state: str = "works on its parts") -> NodeWay:
    places = tuple(("127.0.0.1", port) for port in ports)
    return NodeWay(listed(name, state), places, state not in {GONE, STANDS_BY})


async def speak_http(node: NodeQuestions, stream: trio.SocketStream) -> None:
    """Answer one request, as `connectors.web.operations` does."""
    got = b""
    while b"\r\n\r\n" not in got:
        got += await stream.receive_some()
    head, _, body = got.partition(b"\r\n\r\n")
    assert head.startswith(f"POST {PATH} ".encode())
    length = re.search(rb"(?i)content-length: (\d+)", head)
    sealed = re.search(rb"(?i)" + QUESTION.encode() + rb": (\S+) (\S+)", head)
    assert length is not None
    assert sealed is not None
    while len(body) < int(length[1]):
        body += await stream.receive_some()
    asked, seal = sealed[1].decode(), sealed[2].decode()
    status, said = node.refusal(asked, seal, body) or await node.answer(body)
    if status >= 400:
        said = msgspec.json.encode({"error": {"message": said.decode()}})
    shown = f"HTTP/1.1 {status} x\r\ncontent-length: {len(said)}\r\n\r\n"
    await stream.send_all(shown.encode() + said)


@asynccontextmanager
async def listening(node: NodeQuestions) -> AsyncGenerator[int]:
    """Be a node at a port."""
    async with trio.open_nursery() as nursery:
        serve = partial(trio.serve_tcp, partial(speak_http, node), 0, host="127.0.0.1")
        (listener,) = await nursery.start(serve)
        yield listener.socket.getsockname()[1]
        nursery.cancel_scope.cancel()


class OtherNode(msgspec.Struct):
    """Gives every question the same answer, or never one."""

    said: bytes = b""

    def refusal(self, node: str, seal: str, body: bytes) -> None:
        """Refuse nothing."""

    async def answer(self, body: bytes) -> tuple[int, bytes]:  # noqa: ARG002
        """Say it, or be silent."""
        await trio.lowlevel.checkpoint()
        if not self.said:
            await trio.sleep_forever()
        return 200, self.said


def no_views() -> ViewSources:
    raise AssertionError("nobody looks at a page")


def answers(node: str = "b", key: bytes = KEY) -> NodeAnswers:
    def tree(top: str, _past: str) -> bytes:
        if top:
            raise MisuseError(f"no actor has the name {top}")
        return msgspec.json.encode(Forest((), 40))

    return NodeAnswers(node, key, tree, no_views)


# --- what a node answers --------------------------------------------------------------


@pytest.mark.parametrize(
    ("node", "key", "body", "status", "text"),
    [
        ("c", KEY, b'{"type":"ShowTree"}', MISDIRECTED, b"this is node b"),
        ("b", b"x", b'{"type":"ShowTree"}', 401, b"not sealed"),
        ("b", KEY, b'{"type":"Explode"}', 400, b"does not know this question"),
        ("b", KEY, b"\xff", 400, b"does not know this question"),
        ("b", KEY, b'{"type":"ShowTree","top":"zoe"}', 404, b"no actor has the name"),
        ("b", KEY, b'{"type":"ShowTree"}', 200, b'"actors":40'),
    ],
)
async def test_a_node_answers_only_what_it_is_asked_itself_under_its_key(
    node: str, key: bytes, body: bytes, status: int, text: bytes
) -> None:
    asked = answers()
    refused = asked.refusal(node, seal_of(key, node, body), body)
    got, said = refused or await asked.answer(body)
    assert (got, text in said) == (status, True), said


@given(st.binary(max_size=40), st.text(max_size=8), st.binary(max_size=40))
def test_a_seal_is_good_for_one_question_to_one_node(
    body: bytes, node: str, other: bytes
) -> None:
    seal = seal_of(KEY, "b", body)
    assert is_sealed(KEY, "b", body, seal)
    assert is_sealed(KEY, "b", other, seal) == (other == body)
    if node != "b" and not node.startswith("b "):
        assert not is_sealed(KEY, node, body, seal)
    assert not is_sealed(KEY, "b", body, seal[:-1] + "é")


# --- asking ---------------------------------------------------------------------------


async def ask(question: NodeQuestion, within: float, *ways: NodeWay) -> dict[str, str]:
    """Ask; gives by node why it said nothing, or `ok`."""
    circle = NodeCircle("a", KEY, lambda: ways)
    found = await circle.ask(question, ways, within)
    return {each.node.name: each.why or "ok" for each in found}


async def test_who_is_silent_is_named_with_the_reason() -> None:
    async with listening(OtherNode()) as never, listening(answers()) as well:
        told = await ask(ShowTree(), QUICKLY, way("c", never), way("d"))
        assert told == {"c": "did not answer within 0.1 s", "d": NO_WAY}
        told = await ask(
            ShowTree(),
            PATIENCE,
            way("b", well),
            way("c", well),
            way("d", 1),
            way("e", 1, well, state=STANDS_BY),
            way("f", state=GONE),
            with_fields(way("g"), places=(("no host", 1),)),
            with_fields(way("h"), places=(("::1", 1), ("1::2::3", 1))),
        )
    assert told["b"] == "ok"
    assert "HTTP 421 this is node b" in told["c"]
    assert told["d"].startswith("does not answer at 127.0.0.1:1: ")
    assert told["g"].startswith("does not answer at no host:1: ")
    assert told["h"].startswith("does not answer at ::1:1: ")
    assert told["e"] == told["f"] == NO_ACTORS


async def test_a_node_is_asked_where_it_answers() -> None:
    async with (
        listening(answers("a")) as other,
        listening(answers()) as right,
    ):
        told = await ask(ShowTree(), PATIENCE, way("b", 1, other, right))
        assert told == {"b": "ok"}
        told = await ask(ShowTree("zoe"), PATIENCE, way("b", right))
        assert told == {"b": "no actor has the name zoe"}


async def test_an_answer_of_another_release_is_not_taken_for_a_tree(
    capsys: pytest.CaptureFixture[str],
) -> None:
    other = with_fields(listed("b"), release="9.9")
    async with listening(OtherNode(b'{"forests": 1}')) as port:
        circle = NodeCircle("a", KEY, tuple)
        asked = [NodeWay(other, (("127.0.0.1", port),), has_actors=True)]
        replies = await circle.ask(ShowTree(), asked, PATIENCE)
    assert replies[0].read(Forest) is None
    assert "runs release 9.9" in unreadable(other, "0.1.0")
    assert show_nodes(replies, as_json=False) == 1
    assert "node b  works on its parts: runs release 9.9" in capsys.readouterr().out


# --- where nodes are asked ------------------------------------------------------------


def known(name: str, card: NodeCard, state: str = "up") -> KnownNode:
    return KnownNode(name, state, 1, card, state == "up")


def test_nodes_are_asked_at_their_servers_and_then_as_operators_do() -> None:
    leases = [
        LeaseRow(COMPANY, "a", 1),
        LeaseRow(f"{PART}7", "b", 1),
        LeaseRow(f"{ACCOUNT}bot", "b", 1),
        LeaseRow(f"{PART}8", "c", 1),  # left from when work was shared
    ]
    card = NodeCard(address="10.0.0.5", doors={"http": 80, "page": 81})
    nodes = [
        known("a", with_fields(card, admin=("0.0.0.0", 90))),  # noqa: S104  not listened on
        known("b", with_fields(card, host="elsewhere", admin=("127.0.0.1", 90))),
        known("c", NodeCard(admin=("10.1.0.5", 90), shares_work=False)),
        known("d", NodeCard(), "left"),
        known("e", NodeCard(), "fenced"),
    ]
    a, b, c, d, e = ways_to(nodes, leases, ["http"], ["page"])
    assert a.places == (("10.0.0.5", 80), ("10.0.0.5", 90))
    assert (a.listed.state, a.listed.connectors) == (RUNS, ("page",))
    assert b.places == (("10.0.0.5", 80),)  # its own machine alone reaches the other
    assert (b.listed.parts, b.listed.connectors) == (1, ("bot",))
    assert c.places == (("10.1.0.5", 90),)
    assert [x.has_actors for x in (a, b, c, d, e)] == [True, True, False, False, False]
    assert [x.listed.state for x in (c, d, e)] == [STANDS_BY, ENDED, GONE]


# --- what the page shows and does -----------------------------------------------------


@asynccontextmanager
async def two_nodes(bed: PanelBed, *further: NodeWay) -> AsyncGenerator[ViewSources]:
    """Look from the node `a`, whose neighbour `b` runs the company of a page."""
    inside = bed.app.parts.inside()
    tree = partial(write_tree, bed.app.system, str)
    answered = NodeAnswers("b", KEY, tree, lambda: inside)
    async with listening(answered) as port:
        ways = (way("a", state=RUNS), way("b", port), *further)
        yield replace(inside, nodes=NodeCircle("a", KEY, lambda: ways))


def groups(values: Mapping[str, object]) -> dict[str, dict[str, object]]:
    found = msgspec.convert(values["groups"], list[dict[str, object]])
    return {str(each["node"]): each for each in found}


async def test_the_page_shows_and_kills_the_actors_of_all_nodes(tmp_path: Path) -> None:
    gone = way("c", 1)
    async with open_panels(tmp_path) as bed, two_nodes(bed, gone) as inside:
        for node, listed in (("a", ["a"]), ("b", ["b"]), ("zz", ["a", "b", "c"])):
            asked = ViewRequest("operator", inside, {"node": node})
            assert [*groups(await actors.load(asked))] == listed
        shown = await actors.load(ViewRequest("operator", inside, {"show": "all"}))
        found = groups(shown)
        assert [*found] == ["a", "b", "c"]
        assert found["a"]["forest"] is not None
        assert msgspec.convert(found["b"]["forest"], Forest).actors > 20
        assert str(found["c"]["why"]).startswith("does not answer at 127.0.0.1:1")


async def test_what_is_asked_twice_is_done_once(tmp_path: Path) -> None:
    async with open_panels(tmp_path) as bed:
        inside = bed.app.parts.inside()
        node = NodeAnswers(
            "b", KEY, partial(write_tree, bed.app.system, str), lambda: inside
        )
        form = {"name": f"{names.CONNECTORS}/page/connector"}
        kill, other = (ActByHand(x, form, "o", "page") for x in ("actors/kill", "x"))
        for wish, told in (
            (kill, b"is killed"),
            (kill, b"that was asked already"),
            (other, b"does not know x"),
        ):
            body = msgspec.json.encode(wish)
            _, said = await node.answer(body)
            assert told in said


async def test_the_page_kills_an_actor_of_any_node(tmp_path: Path) -> None:
    async with open_panels(tmp_path) as bed, two_nodes(bed, way("c", 1)) as inside:
        name = f"{names.CONNECTORS}/page/connector"
        query = {"kill": name, "node": "b"}
        shown = await actors.load(ViewRequest("operator", inside, query))
        assert [*groups(shown)] == ["b"]
        assert shown["victim_node"] == "b"
        form = {"name": name, "node": "b"}
        told = await actors.kill(ViewRequest("operator", inside, form=form))
        assert told == f"{name} is killed; its supervisor restarts it"
        for node, why in (
            ("c", "not known whether it was done: node c: does not answer"),
            ("zz", "there is no node zz now"),
            ("b", "there is no such actor now"),
        ):
            wrong = {"name": f"{names.AGENTS}/nobody", "node": node}
            with pytest.raises(Refusal, match=re.escape(why)):
                await actors.kill(ViewRequest("operator", inside, form=wrong))
        with pytest.raises(Refusal, match="not known whether it was done: node c"):
            await queue.stop(ViewRequest("operator", inside, form={"id": "nothing"}))


ASKS = """
[[permissions]]
ask = ["calculate"]

[[permissions]]
delegated = true
ask = ["calculate"]
"""


async def test_the_overview_is_of_all_nodes(tmp_path: Path) -> None:
    async with (
        open_panels(tmp_path, ASKS) as bed,
        two_nodes(bed, way("c", 1)) as inside,
    ):
        before = await overview.load(ViewRequest("operator", inside))
        nodes = msgspec.convert(before["nodes"], list[dict[str, object]])
        assert [each["name"] for each in nodes] == ["a", "b", "c"]
        assert [each["is_ready"] for each in nodes] == [True, True, False]
        assert "does not answer" in str(nodes[2]["why"])
        assert "Node {node}: {reason}" in str(before["todos"])
        rows = msgspec.convert(before["accounts"], list[dict[str, object]])
        assert {"running"} == {each["state"] for each in rows}
        await bed.say("sum 12*7")
        await bed.wait_shown("/overview", "12*7")
        # Both are the same process here: it waits at both, and is decided at one.
        (waits,) = bed.app.company.services.board.open
        question = bed.app.company.services.board.question_of(waits.id)
        form = {"question": question}
        asked = ViewRequest("operator", inside, form=form, connector="page")
        assert "may use calculate" in await overview.approve(asked)
        with pytest.raises(Refusal, match="node c: does not answer"):
            await overview.deny(asked)
        circle = inside.nodes
        assert circle is not None
        (reply, _) = await circle.ask(ReadReport(), circle.others(), PATIENCE)
        report = reply.read(NodeReport)
        assert report is not None
        assert (report.reasons, report.turns >= 0) == ((), True)


async def waiting_call(bed: PanelBed) -> OpenApproval:
    """Have a tool call wait for an approval."""
    await bed.say("sum 12*7")
    await bed.wait_shown("/overview", "12*7")
    (waits,) = bed.app.company.services.board.open
    return waits


async def test_an_actor_asks_all_other_nodes(tmp_path: Path) -> None:
    async with (
        open_panels(tmp_path, ASKS) as bed,
        two_nodes(bed, way("c", 1)) as inside,
    ):
        assert inside.nodes is not None
        waits, ask = await waiting_call(bed), inside.nodes.ask_others
        place = waits.address
        said = await ask(ReadQuestions(place.connector, place.chat))
        (why,) = said.silent
        assert why.startswith("Node c: does not answer at 127.0.0.1:1")
        (answer,) = said.answers
        (found,) = msgspec.json.decode(answer, type=list[QuestionAsked])
        assert found.approval == waits
        assert (await ask(ReadQuestions("page", "another"))).answers == [b"[]"]
        working = IsWorking(f"{names.sessions(waits.agent)}/")
        assert (await ask(working)).answers == [b"false"]  # who waits does not work


async def test_what_waits_elsewhere_is_decided_there_though_it_is_known_here(
    tmp_path: Path,
) -> None:
    async with (
        open_panels(tmp_path, ASKS) as bed,
        two_nodes(bed, way("c", 1)) as inside,
    ):
        board, waits = bed.app.company.services.board, await waiting_call(bed)
        board.learn(with_fields(waits, id="ABCD"), "q")
        asked = ViewRequest("operator", inside, form={"question": "q"})
        with pytest.raises(Refusal, match="node c: does not answer"):
            await overview.approve(asked)


async def test_a_call_is_decided_once_at_the_node_where_it_waits(
    tmp_path: Path,
) -> None:
    async with open_panels(tmp_path, ASKS) as bed, two_nodes(bed) as inside:
        assert inside.nodes is not None
        waits, ask = await waiting_call(bed), inside.nodes.ask_others
        decision = DecideQuestion(
            question=bed.app.company.services.board.question_of(waits.id),
            by="page/operator",
            is_approved=False,
            is_lasting=False,
            once="1",
        )
        for wanted, answers in (
            (with_fields(decision, by="page/stranger", once="2"), []),
            (decision, [b"true"]),
            (decision, []),  # asked twice
            (with_fields(decision, once="3"), []),  # nobody waits any more
        ):
            assert (await ask(wanted)).answers == answers


def beside_an_answer(name: str) -> Record:
    """Give the record of a call that makes no answer, for 0.5 dollars."""
    run = Run(provider="main", model="m", attempt=1, seconds=2.0, cost=0.5)
    inbound = Inbound(
        id="1",
        platform="terminal",
        platform_id="1",
        address=Address("cli", "kitchen"),
        sender_id="sam",
        sender_name="Sam",
        text="hi",
        received_at=1.0,
    )
    return usage_of_check(name, inbound, "anna", run)


async def test_what_models_do_beside_answers_is_no_failed_answer(
    tmp_path: Path,
) -> None:
    async with open_panels(tmp_path) as bed:
        look = look_of(ViewRequest("operator", bed.app.parts.inside()))
        before, after = Trends(), Trends()
        overview.enter_records(look, before)
        check = beside_an_answer("checked")
        await bed.app.store.commit(Commit(at=look.now, records=(check,)))
        overview.enter_records(look, after)
    (old,), (new,) = (x.series(look.now, 86_400.0, 1) for x in (before, after))
    assert new.dollars == old.dollars + 0.5
    assert (new.errors, new.times) == (old.errors, old.times)


async def test_what_is_counted_while_it_runs_is_not_entered_once_more(
    tmp_path: Path,
) -> None:
    async with open_panels(tmp_path) as bed:
        look = look_of(ViewRequest("operator", bed.app.parts.inside()))
        before, sampled = Trends(), Trends()
        overview.enter_records(look, before)
        sampled.take(Sample(at=look.now))
        later = beside_an_answer("later")
        audited = with_fields(later, id="audited", kind=AUDIT)
        await bed.app.store.commit(Commit(at=look.now, records=(later, audited)))
        overview.enter_records(look, sampled)
    (old,), (new,) = (x.series(look.now, 86_400.0, 1) for x in (before, sampled))
    assert (new.dollars, new.messages) == (old.dollars, old.messages)


async def test_one_process_shows_no_nodes(tmp_path: Path) -> None:
    async with open_panels(tmp_path) as bed:
        inside = bed.app.parts.inside()
        assert await inside.ask_others(ReadActors({})) == []
        assert bed.app.parts.operations.nodes is None
        assert "node" not in await bed.show("/actors?show=all")
        shown = await bed.show("/overview")
        assert 'id="nodes"' not in shown
        assert "event loop lag of node" not in shown
        assert (await bed.client.post(PATH)).status_code in {404, 405}
        assert WAITING in await bed.show("/queue")
