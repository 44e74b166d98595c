"""Proves who answers in a group: by which rule, in which order, and never by two."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from actors.config.routes import GroupConfig
from actors.messages.inbound import Address, DelegationChain, Inbound, Quoted
from actors.rules.groups.activation import (
    AgentVerdict,
    Situation,
    author_of,
    judge,
    outcome_of,
)
from actors.rules.groups.mentions import hailed
from actors.rules.groups.routes import (
    Binding,
    GroupBehaviour,
    Routed,
    RoutingTable,
    Unrouted,
    group_of,
    routing_table,
    with_groups,
)

NAMES = ("anna", "ben", "carl")


def said(text: str = "hi", **fields: Any) -> Inbound:
    given: dict[str, Any] = {
        "id": "1",
        "platform": "test",
        "platform_id": "1",
        "address": Address("chat", "room"),
        "sender_id": "zoe",
        "sender_name": "Zoe",
        "text": text,
        "received_at": 0.0,
        "is_direct": False,
    }
    return Inbound(**{**given, **fields})


def table(*bindings: Binding, **settings: Any) -> RoutingTable:
    usual = {name: {"reply_window": 5.0, **settings.get(name, {})} for name in NAMES}
    groups = {
        name: group_of(msgspec.convert(given, GroupConfig), name=name)
        for name, given in usual.items()
    }
    return with_groups(routing_table(NAMES, bindings), groups)


def of(
    agent: str,
    inbound: Inbound,
    routes: RoutingTable | None = None,
    situation: Situation | None = None,
) -> AgentVerdict:
    heard = judge(inbound, routes or table(), situation or Situation())
    return next(each for each in heard.judged if each.agent == agent)


def just_answered(*agents: str, now: float = 100.0) -> Situation:
    return Situation(now=now, answered_at=dict.fromkeys(agents, now))


REPLY = {"quoted": Quoted("84", "anna", agent="anna")}
ALWAYS = {"anna": {"activation": "always"}}
NEVER = {"anna": {"activation": "never"}}
CALLED = {"anna": {"mention_patterns": ("annie", "<@7>")}}


@pytest.mark.parametrize(
    ("inbound", "settings", "reason"),
    [
        (said(), ALWAYS, "always"),
        (said("@anna hi", **REPLY), ALWAYS, "always"),
        (said("@anna hi", **REPLY), {}, "reply"),
        (said("@anna annie"), CALLED, "mention"),
        (said("hi", mentions=("Anna",)), {}, "mention"),
        (said("/status@anna"), {}, "mention"),
        (said("Hey ANNIE!"), CALLED, "pattern"),
        (said("<@7> hi"), CALLED, "pattern"),
        (said("wannie be"), CALLED, None),
        (said("hi"), {}, None),
        (said("@anna hi", **REPLY), NEVER, None),
        (said("@annabel hi"), {}, None),
    ],
)
def test_the_first_reason_that_holds_is_the_reason(
    inbound: Inbound, settings: dict[str, Any], reason: str | None
) -> None:
    assert of("anna", inbound, table(**settings)).reason == reason


@pytest.mark.parametrize(
    ("minutes", "now", "answers"),
    [
        (5.0, 400.0, True),
        (5.0, 400.1, False),
        (0.0, 100.0, False),
        (1e5, 6e6, True),
        (5.0, 99.0, True),  # the clock was set right by a second
        (5.0, -200.1, False),  # by more than the window: who knows when that was
    ],
)
def test_a_window_is_open_for_as_long_as_the_settings_say(
    minutes: float, now: float, *, answers: bool
) -> None:
    situation = Situation(now=now, answered_at={"anna": 100.0})
    routes = table(anna={"reply_window": minutes})
    judged = of("anna", said(), routes, situation)
    assert judged.reason == ("window" if answers else None)
    assert of("ben", said(), routes, situation).silence == "uncalled"


@pytest.mark.parametrize(
    ("inbound", "settings", "answering"),
    [
        (said("@anna @ben hi"), {}, ("anna", "ben")),
        (said("@ben @anna hi"), {}, ("ben", "anna")),
        (said("@ben hi"), ALWAYS, ("ben",)),
        (said("@ben hi, annie"), CALLED, ("ben",)),
        (said("@ben hi", **REPLY), {}, ("ben", "anna")),
        (said("what?", **REPLY), {"ben": {"activation": "always"}}, ("anna",)),
        (said("@anna @ben hi"), ALWAYS, ("anna", "ben")),
        (said("hi"), {**ALWAYS, "ben": {"activation": "always"}}, ("anna", "ben")),
        (said("@ben hi", present=("anna",)), ALWAYS, ("anna",)),
        (said("@nobody hi"), ALWAYS, ("anna",)),
    ],
)
def test_who_is_not_called_yields_to_whoever_is(
    inbound: Inbound, settings: dict[str, Any], answering: tuple[str, ...]
) -> None:
    assert judge(inbound, table(**settings)).answering == answering


def test_who_is_not_in_the_chat_does_not_hear_it() -> None:
    inbound = said("@anna @ben hi", present=("BEN", "stranger"))
    heard = judge(inbound, table(**ALWAYS))
    assert heard.answering == ("ben",)
    assert of("anna", inbound).silence == "absent"
    assert judge(said("@anna", present=("stranger",)), table()).answering == ()


def test_a_route_says_whose_words_are_that_call_nobody() -> None:
    always = {"activation": "always"}
    route = Binding("ben", chat="ro*", kind="group")
    routes = table(route, anna=always, ben=always)
    assert judge(said("hi"), routes).answering == ("ben",)
    assert judge(said("@anna hi"), routes).answering == ("anna",)
    assert judge(said("hi"), routes, just_answered("anna")).answering == ("anna", "ben")
    elsewhere = said("hi", address=Address("chat", "hall"))
    assert judge(elsewhere, routes).answering == ("anna", "ben")
    assert judge(said("hi", present=("anna",)), routes).answering == ("anna",)


def test_a_route_may_say_when_its_agent_answers() -> None:
    louder = table(Binding("ben", chat="room", activation="always"))
    assert judge(said("hi"), louder).answering == ("ben",)
    quiet = table(Binding("anna", activation="never"), anna={})
    assert judge(said("@anna hi"), quiet).answering == ()


@pytest.mark.parametrize(
    ("binding", "fits"),
    [
        (Binding("ben", roles=("admin", "mod"), activation="always"), True),
        (Binding("ben", roles=("owner",), activation="always"), False),
        (Binding("ben", kind="direct", activation="always"), False),
        (Binding("ben", kind="group", activation="always"), True),
    ],
)
def test_routes_look_at_roles_and_at_the_kind_of_chat(
    binding: Binding, *, fits: bool
) -> None:
    inbound = said("hi", roles=("mod",))
    assert judge(inbound, table(binding)).answering == (("ben",) if fits else ())


def test_another_program_is_answered_if_it_may_and_calls() -> None:
    inbound, lets = said("@anna hi", is_bot=True), {"bots": "mention"}
    assert of("anna", inbound).silence == "bot"
    assert of("anna", inbound, table(anna=lets)).reason == "peer"
    loud = table(anna={**lets, "activation": "always"})
    assert of("anna", said("hi", is_bot=True), loud).silence == "bot"
    assert of("anna", said("hi", is_bot=True, **REPLY), loud).silence == "bot"
    barred = Situation(barred=frozenset({"anna"}))
    assert of("anna", inbound, table(anna=lets), barred).silence == "rounds"


def test_a_model_is_asked_where_the_settings_want_it() -> None:
    wants = {"relevance_check": True, "broadcast_check": True}
    routes, situation = table(anna=wants, ben=wants), just_answered("anna")
    heard = judge(said("and now?"), routes, situation)
    assert [each.check for each in heard.judged] == ["relevance", "broadcast", None]
    assert heard.answering == ()
    for text in ("@ben hi", "/status"):
        assert not judge(said(text), routes, situation).asking
    routed = table(Binding("carl"), anna=wants)
    assert not judge(said("hi"), routed).asking


@pytest.mark.parametrize(("is_meant", "reasons"), [(True, True), (False, False)])
def test_what_the_model_said_is_taken_into_account(
    *, is_meant: bool, reasons: bool
) -> None:
    wants = {"relevance_check": True, "broadcast_check": True}
    situation = msgspec.structs.replace(
        just_answered("anna"), checked=dict.fromkeys(NAMES, is_meant)
    )
    heard = judge(said(), table(anna=wants, ben=wants), situation)
    found = [each.reason for each in heard.judged]
    assert found == (["window", "broadcast", None] if reasons else [None] * 3)
    assert not heard.asking


def test_what_comes_out_is_named() -> None:
    routed = outcome_of(judge(said("@anna @ben"), table()))
    assert isinstance(routed, Routed)
    assert routed.reasons == ("mention", "mention")
    unrouted = outcome_of(judge(said("hi"), table()))
    assert isinstance(unrouted, Unrouted)
    assert unrouted.reason == "not_addressed"


names = st.sampled_from([*NAMES, "ANNA", "stranger", ""])
messages = st.builds(
    said,
    text=st.lists(
        st.sampled_from(["@anna", "@ben,", "hi", "annie", "/stop"]) | st.text(),
        max_size=4,
    ).map(" ".join),
    quoted=st.none() | st.builds(Quoted, agent=names),
    mentions=st.lists(names, max_size=2).map(tuple),
    present=st.lists(names, max_size=3).map(tuple),
    is_bot=st.booleans(),
    chain=st.builds(
        DelegationChain, st.lists(st.sampled_from(NAMES), max_size=2).map(tuple)
    ),
    agent=st.sampled_from(["", *NAMES]),
)
configs = st.builds(
    GroupConfig,
    activation=st.sampled_from(["mention", "always", "never"]),
    mention_patterns=st.sampled_from([(), ("annie",), ("hi", "@anna")]),
    reply_window=st.sampled_from([0.0, 5.0]),
    relevance_check=st.booleans(),
    broadcast_check=st.booleans(),
    bots=st.sampled_from(["never", "mention"]),
)
bindings = st.builds(
    Binding,
    agent=st.sampled_from(NAMES),
    kind=st.sampled_from(["any", "direct", "group"]),
    activation=st.sampled_from(["agent", "always", "never"]),
)


def make(groups: dict[str, GroupBehaviour], routes: list[Binding]) -> RoutingTable:
    return with_groups(routing_table(NAMES, routes), groups)


tables = st.builds(
    make,
    st.dictionaries(st.sampled_from(NAMES), configs.map(group_of)),
    st.lists(bindings, max_size=2),
)
situations = st.builds(
    Situation,
    now=st.just(100.0),
    answered_at=st.dictionaries(
        st.sampled_from(NAMES), st.sampled_from([-1e4, 99.0, 200.0])
    ),
    barred=st.frozensets(st.sampled_from(NAMES)),
    checked=st.dictionaries(st.sampled_from(NAMES), st.booleans()),
)


@given(messages, tables, situations)
def test_every_agent_is_judged_once_and_has_one_outcome(
    inbound: Inbound, routes: RoutingTable, situation: Situation
) -> None:
    heard = judge(inbound, routes, situation)
    assert sorted(each.agent for each in heard.judged) == sorted(NAMES)
    for each in heard.judged:
        found = [each.reason, each.check, each.silence]
        assert sum(one is not None for one in found) == 1
    assert author_of(inbound) not in heard.answering


@given(messages, tables, situations)
def test_whoever_answers_is_there_and_yields_to_nobody(
    inbound: Inbound, routes: RoutingTable, situation: Situation
) -> None:
    heard = judge(inbound, routes, situation)
    there = {name.casefold() for name in inbound.present}
    reasons = {each.agent: each.reason for each in heard.judged if each.reason}
    for agent, reason in reasons.items():
        assert not there or agent in there
        assert reason != "broadcast" or situation.checked[agent]
    if inbound.is_bot:
        assert set(reasons.values()) <= {"peer"}
        assert not situation.barred & set(reasons)


@given(messages, tables, situations)
def test_what_came_out_stays_so_when_it_is_looked_at_again(
    inbound: Inbound, routes: RoutingTable, situation: Situation
) -> None:
    heard = judge(inbound, routes, situation)
    assert heard == judge(inbound, routes, situation)
    said_no = {each.agent: False for each in heard.asking}
    checked = msgspec.structs.replace(
        situation, checked={**situation.checked, **said_no}
    )
    assert judge(inbound, routes, checked).answering == heard.answering


GENERAL, OWN = Situation(command="company"), Situation(command="agent")
HERE = {"present": ("ben",)}


@pytest.mark.parametrize(
    ("inbound", "situation", "settings", "answering"),
    [
        (said("/help"), GENERAL, {}, ("anna",)),
        (said("/help"), GENERAL, NEVER, ("ben",)),
        (said("/help"), GENERAL, {"ben": {"activation": "always"}}, ("anna",)),
        (said("/help", present=("carl", "ben")), GENERAL, {}, ("ben",)),
        (said("/help", mentions=("carl",)), GENERAL, {}, ("carl",)),
        (said("/help", quoted=Quoted("84", "ben", agent="ben")), GENERAL, {}, ("ben",)),
        (said("/new"), OWN, {}, ()),
        (said("/new", **HERE), OWN, {}, ("ben",)),
        (said("/new", **HERE), Situation(), {}, ()),
    ],
)
def test_a_command_that_names_nobody_is_answered_once(
    inbound: Inbound,
    situation: Situation,
    settings: dict[str, Any],
    answering: tuple[str, ...],
) -> None:
    assert judge(inbound, table(**settings), situation).answering == answering


def test_a_command_for_all_is_answered_by_the_agent_of_the_route() -> None:
    routes = table(Binding("carl", kind="group"))
    assert judge(said("/help"), routes, GENERAL).answering == ("carl",)


@pytest.mark.parametrize(
    "text",
    [
        "anna, echo eight",
        "Anna?",
        "ANNA",
        "Hey anna echo eight",
        "hi, Anna!",
        "¿Anna? ¿estás?",
        "good morning anna: tea?",
        "are you there, anna?",
        "thanks anna",
        "anna - look",
        "olá anna, tudo bem?",
        "bom dia, Anna!",
        "coucou anna tu es là ?",
        "안녕하세요 anna, 질문이 있어요",
        "anna야 도와줘",
        "anna님, 안녕하세요",
        "buenos días anna",
    ],
)
def test_a_name_at_the_beginning_or_the_end_calls(text: str) -> None:
    assert of("anna", said(text)).reason == "pattern"
    silent = {"anna": {"own_name": False}}
    assert of("anna", said(text), table(**silent)).reason is None


@pytest.mark.parametrize(
    ("text", "called"),
    [
        ("Anna, Ben: good day", ("anna", "ben")),
        ("anna and ben, what do you think?", ("anna", "ben")),
        ("Hallo Anna und Ben wie geht's", ("anna", "ben")),
        ("ben & anna: look", ("anna", "ben")),
        ("anna, ben and carl, tea?", ("anna", "ben", "carl")),
        ("what do you think, anna and ben?", ("anna", "ben")),
        ("is it so, anna, ben?", ("anna", "ben")),
        ("anna와 ben, 안녕", ("anna", "ben")),
        ("hi anna, ben is ill", ("anna",)),
        ("anna, ben is ill", ("anna",)),
        ("I saw anna, ben", ("ben",)),
        ("anna and ben are ill", ()),
        ("we like anna and ben", ()),
    ],
)
def test_several_who_are_named_together_are_called_together(
    text: str, called: tuple[str, ...]
) -> None:
    answers = [name for name in NAMES if of(name, said(text)).reason == "pattern"]
    assert tuple(answers) == called


@given(st.text(st.sampled_from("abn ,&.:") | st.characters(), max_size=40))
def test_whoever_is_called_stands_there(text: str) -> None:
    names = frozenset({"a", "ann", "b"})
    called = hailed(text, names)
    assert called <= names
    assert all(each in text for each in called)
    assert hailed(text, frozenset()) == frozenset()


@pytest.mark.parametrize(
    "text",
    [
        "anna is ill today",
        "I saw anna, she waved",
        "anna.smith@example.org",
        "Annabel, hello",
        "hey annabel",
        "ask ben or anna about it",
        "wanna, anna-lena?",
        "anna가 아파요",
        "anna님이 아파요",
        "ola annabel",
    ],
)
def test_a_name_that_is_spoken_of_calls_nobody(text: str) -> None:
    assert of("anna", said(text)).reason is None
