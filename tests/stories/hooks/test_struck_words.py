"""A word that hooks take out, or that they hold back, is nowhere afterwards.

It is in no request to a model, no stored row, no log line, no draft and no delivery,
whatever way the words go: to people, to colleagues, into memory, and back as quotes and
overheard words.
"""

from __future__ import annotations

import logging
from typing import Any

import msgspec
import pytest
import trio.testing

from actors import names
from actors.config.agents import AgentConfig
from actors.config.collaboration import CollaborationConfig
from actors.config.sessions import BufferingConfig
from actors.hooks.book import AskHook
from actors.hooks.chain import Verdict
from actors.messages.deliveries import Abilities
from actors.messages.inbound import Attachment, ModelRequest, Quoted, TranscriptLine
from connectors.config.tools import MediaConfig
from connectors.media.reader import Reader
from tests.fakes.company.beating import FIRST, Listed, beating
from tests.fakes.company.by_itself import ByItself, acts, planned
from tests.fakes.company.company import (
    EVERY_FAMILY,
    Cast,
    FakeModel,
    Platform,
    Says,
    at_rest,
    call,
    heard,
    open_company,
    until,
)
from tests.fakes.company.hooked import FakeHook, hooked, passes, refuses
from tests.fakes.company.minded import Minded
from tests.fakes.media import FakeDocuments, FakeFetches, FakeTranscriber
from tests.fakes.models.summing import Notebook, Summer
from tests.stories.outbound.test_sent_files import sends, stage

Clock = trio.testing.MockClock

WORD = "xyzzy4711"
BOTH = ("message_received", "message_sending")


async def strikes(asked: AskHook) -> Verdict:
    if WORD not in asked.text:
        return Verdict()
    return Verdict("change", asked.text.replace(WORD, "[struck]"))


async def holds_back(asked: AskHook) -> Verdict:
    return Verdict("cancel") if WORD in asked.text else Verdict()


def struck(cast: Cast, talk: Any = strikes) -> FakeHook:
    return hooked(cast, talk, *BOTH)


def rows_of(cast: Cast) -> str:
    rows = cast.store._rows
    kept: list[dict[str, object]] = [vars(rows), vars(rows.facts)]
    return repr([{k: v for k, v in each.items() if k != "_undo"} for each in kept])


def places(cast: Cast, caplog: pytest.LogCaptureFixture) -> list[str]:
    """Name where the word is."""
    people = (cast.platform.shown, cast.platform.deliveries)
    found = {
        "models": repr(cast.model.requests),
        "rows": rows_of(cast),
        "log": repr([vars(each) for each in caplog.records]),
        "people": repr(people),
    }
    return [name for name, text in found.items() if WORD in text]


@pytest.fixture(autouse=True)
def all_lines(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)


def answering(text: str | Says) -> FakeModel:
    """Make anna answer people so once; the others, and anna later, say `well`."""
    said: list[object] = []

    def talk(request: ModelRequest) -> str | Says:
        if request.agent != "anna" or said:
            return "well"
        said.append(text)
        return text

    return FakeModel(talk)


def pair(model: FakeModel, **settings: Any) -> Minded:
    anna = AgentConfig(delegates=("ben",), markers=EVERY_FAMILY)
    agents = {"anna": anna, "ben": AgentConfig()}
    return Minded(agents=agents, model=model, **settings)


def group() -> Platform:
    return Platform(is_direct=False)


async def converse(clock: Clock, cast: Cast, *texts: str, **how: Any) -> None:
    async with open_company(clock, cast):
        for text in texts:
            cast.platform.write(text, **how)
            await at_rest(cast)


# --- what agents say ------------------------------------------------------------------

DIRECTIVES = (
    f"[DELEGATE:ben] Say {WORD} [/DELEGATE]",
    f"[MEMORY:sticky] the code is {WORD} [/MEMORY]",
    f"[STATE:code] {WORD} [/STATE]",
    f"LESSON: codes | never say {WORD}",
    f"SCHEDULE: say {WORD} | in 1 hour",
    f"PERSONALITY: as {WORD}",
    f"HEARTBEAT_ADD: look for {WORD}",
)


@pytest.mark.parametrize("talk", [strikes, holds_back])
@pytest.mark.parametrize("directive", DIRECTIVES)
async def test_directives_hold_no_word_that_a_hook_takes_out(
    directive: str, talk: Any, autojump_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    cast = pair(answering(f"It is {WORD}.\n{directive}"))
    hook = struck(cast, talk)
    await converse(autojump_clock, cast, "hello", "and now?")
    assert places(cast, caplog) == []
    assert sum(WORD in text for text in hook.texts) >= (2 if talk is strikes else 1)
    assert "anna: well" in cast.platform.said()


async def test_of_an_answer_that_is_held_back_nothing_comes(
    autojump_clock: Clock,
) -> None:
    cast = pair(answering(f"Ask ben. {DIRECTIVES[0]}\n[MEMORY:sticky] nuts [/MEMORY]"))
    struck(cast, holds_back)
    await converse(autojump_clock, cast, "hello")
    assert [each.agent for each in cast.model.requests] == ["anna"]
    assert await cast.known("person:fake/zoe") == []
    assert await cast.inbox() == {"replied": 1}


async def test_a_colleague_hears_a_task_as_the_hook_leaves_it(
    autojump_clock: Clock,
) -> None:
    cast = pair(answering(f"ben does it. {DIRECTIVES[0]}"))
    struck(cast)
    await converse(autojump_clock, cast, "hello")
    assert heard(cast.model.requests[-1]) == "Say [struck]"


@pytest.mark.parametrize(
    ("hook", "heard_by_ben"), [(strikes, ["Say [struck]"]), (holds_back, [])]
)
async def test_a_task_that_is_handed_on_by_a_tool_is_as_the_hook_leaves_it(
    hook: Any, heard_by_ben: list[str], autojump_clock: Clock
) -> None:
    def talk(request: ModelRequest) -> str | Says:
        if request.agent != "anna":
            return "well"
        if request.lines[-1].role == "tool":
            return f"ben does it, with {WORD}."
        return Says(calls=(call("delegate", agent="ben", task=f"Say {WORD}"),))

    cast = pair(FakeModel(talk))
    struck(cast, hook)
    await converse(autojump_clock, cast, "hello")
    of_ben = [each for each in cast.model.requests if each.agent == "ben"]
    assert [heard(each) for each in of_ben] == heard_by_ben


async def test_who_is_called_in_the_open_hears_what_the_room_reads(
    autojump_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    model = answering(f"@ben, the code is {WORD}, right?")
    openly = CollaborationConfig(visible=True)
    cast = pair(model, platform=group(), collaboration=openly)
    struck(cast)
    await converse(autojump_clock, cast, "@anna the code?", "@ben what was said?")
    assert [each.agent for each in cast.model.requests] == ["anna", "ben", "ben"]
    assert "[struck], right?" in repr(cast.model.requests[1])
    assert places(cast, caplog) == []


async def test_nobody_is_called_by_an_answer_that_is_held_back(
    autojump_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    model = answering(f"@ben, the code is {WORD}, right?")
    openly = CollaborationConfig(visible=True)
    cast = pair(model, platform=group(), collaboration=openly)
    struck(cast, holds_back)
    await converse(autojump_clock, cast, "@anna the code?")
    assert [each.agent for each in cast.model.requests] == ["anna"]
    assert places(cast, caplog) == []


@pytest.mark.parametrize("talk", [strikes, holds_back])
async def test_questions_behind_the_scenes_are_asked_as_hooks_leave_them(
    talk: Any, autojump_clock: Clock
) -> None:
    asks = Says(calls=(call("consult", agents=["ben"], message=f"{WORD}?"),))
    cast = pair(answering(asks))
    struck(cast, talk)
    await converse(autojump_clock, cast, "hello")
    asked = [heard(each) for each in cast.model.requests if each.agent == "ben"]
    assert asked == (["[struck]?"] if talk is strikes else [])


@pytest.mark.parametrize("talk", [strikes, holds_back])
async def test_answers_behind_the_scenes_are_given_as_hooks_leave_them(
    talk: Any, autojump_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    def converses(request: ModelRequest) -> str | Says:
        if request.agent == "ben":
            return f"It is {WORD}."
        if "judge" in request.lines[-1].text.casefold():
            return "[DONE]"
        if any(line.role == "tool" for line in request.lines):
            return "well"
        return Says(calls=(call("collaborate", agent="ben", message="?", turns=2),))

    cast = pair(FakeModel(converses))
    hook = struck(cast, talk)
    await converse(autojump_clock, cast, "hello")
    assert places(cast, caplog) == []
    assert cast.platform.said() == ["anna: well"]
    assert not any("Judge" in text for text in hook.texts)
    told = repr(cast.model.requests[-1].lines)
    assert ("It is [struck]." if talk is strikes else "held the words back") in told


@pytest.mark.parametrize("on_failure", ["open", "closed"])
async def test_all_parts_together_have_a_bounded_time(
    on_failure: str, autojump_clock: Clock
) -> None:
    async def is_slow(_asked: AskHook) -> Verdict:
        await trio.sleep(3.0)
        return Verdict()

    cast = pair(answering("\n".join(["Well.", *DIRECTIVES[1:]])))
    hook = hooked(cast, is_slow, "message_sending", on_failure=on_failure)
    await converse(autojump_clock, cast, "hello")
    assert len(hook.asked) == 4
    assert any("Well." in x for x in cast.platform.said()) == (on_failure == "open")


async def test_drafts_show_no_word_that_a_hook_takes_out(
    autojump_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    pieces = ("It ", "is ", WORD)
    cast = pair(answering(Says("".join(pieces), pieces=pieces, pause=1.0)))
    struck(cast)
    await converse(autojump_clock, cast, "hello", "and now?")
    assert cast.platform.said() == ["anna: It is [struck]", "anna: well"]
    assert places(cast, caplog) == []


async def test_what_was_interrupted_leaves_no_word(
    autojump_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    pieces = ("It ", "is ", WORD, " for ", "ever")
    cast = pair(answering(Says("".join(pieces), pieces=pieces, pause=1.0)))
    cast.buffering = BufferingConfig(policy="interrupt")
    struck(cast)
    async with open_company(autojump_clock, cast):
        cast.platform.write("hello")
        await trio.sleep(3.5)
        cast.platform.write("no, wait")
        await at_rest(cast)
    assert cast.platform.said()[-1] == "anna: well"
    assert places(cast, caplog) == []


async def test_names_and_captions_of_files_are_as_the_hook_leaves_them(
    autojump_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    cast = stage(f"See:\n[DOCUMENT:b.pdf | this is {WORD}]")
    struck(cast)
    await converse(autojump_clock, cast, "hello", "and now?")
    sent, *_ = [each.file for each in cast.platform.deliveries if each.file]
    assert (sent.name, sent.caption) == ("b.pdf", "this is [struck]")
    assert places(cast, caplog) == []


@pytest.mark.parametrize("talk", [strikes, holds_back])
async def test_captions_of_files_sent_by_a_tool_are_as_the_hook_leaves_them(
    talk: Any, autojump_clock: Clock
) -> None:
    cast = stage(sends("b.pdf", caption=f"this is {WORD}"), "There.")
    struck(cast, talk)
    await converse(autojump_clock, cast, "hello")
    sent = [each.file.caption for each in cast.platform.deliveries if each.file]
    assert sent == (["this is [struck]"] if talk is strikes else [])


@pytest.mark.parametrize("talk", [strikes, holds_back])
async def test_a_task_handed_on_by_a_tool_is_as_the_hook_leaves_it(
    talk: Any, autojump_clock: Clock
) -> None:
    hands_on = call("delegate", agent="ben", task=f"Say {WORD}")

    def talks(request: ModelRequest) -> str | Says:
        if request.agent == "ben" or request.lines[-1].role == "tool":
            return "well"
        return Says("ben does it.", calls=(hands_on,))

    cast = pair(FakeModel(talks))
    struck(cast, talk)
    await converse(autojump_clock, cast, "hello")
    asked = [heard(each) for each in cast.model.requests if each.agent == "ben"]
    assert asked == (["Say [struck]"] if talk is strikes else [])


async def test_thoughts_do_not_get_past_a_hook(
    autojump_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    said = f'{{"text": "Spoken", "thought": "{WORD}", "actions": ["reply"]}}'
    cast = Cast(agents={"anna": AgentConfig(json_answers=True)}, model=answering(said))
    cast.platform.can = Abilities(shows_thoughts=True)
    hooked(cast, passes, "message_sending")
    await converse(autojump_clock, cast, "hello")
    assert cast.platform.said() == ["anna: Spoken"]
    assert places(cast, caplog) == []


async def test_a_summary_is_made_of_the_words_that_hooks_left(
    autojump_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    model = Summer(talk=lambda _request: f"It is {WORD}. " + "so many words " * 20)
    cast = Cast(model=model, remember=Notebook())
    cast.agents["anna"] = AgentConfig(max_history=100, markers=())
    context = msgspec.structs.replace(cast.agents["anna"].context, window_tokens=600)
    cast.agents["anna"] = msgspec.structs.replace(cast.agents["anna"], context=context)
    struck(cast)
    await converse(autojump_clock, cast, *(f"what is it, {n}?" for n in range(12)))
    assert model.asked("summary")
    assert places(cast, caplog) == []


async def test_a_reminder_is_said_only_if_the_hook_lets_it(
    autojump_clock: Clock,
) -> None:
    cast = pair(answering("fine\nSCHEDULE: bring the cake | in 1 hour"))
    hook = struck(cast)
    async with open_company(autojump_clock, cast):
        cast.platform.write("hello")
        await at_rest(cast)
        hook.talk = refuses
        await trio.sleep(4_000.0)
        await at_rest(cast)
    assert hook.texts[-1] == "bring the cake"
    assert not any("⏰" in each for each in cast.platform.said())


@pytest.mark.parametrize("on_failure", ["open", "closed"])
async def test_a_reminder_about_which_no_hook_can_answer_is_said_if_that_is_allowed(
    on_failure: str, autojump_clock: Clock
) -> None:
    async def never(_asked: AskHook) -> Verdict:
        await trio.sleep_forever()
        raise AssertionError

    cast = pair(answering("fine\nSCHEDULE: bring the cake | in 1 hour"))
    hook = hooked(cast, passes, "message_sending", on_failure=on_failure)
    async with open_company(autojump_clock, cast) as system:
        cast.platform.write("hello")
        await at_rest(cast)
        hook.talk, asked = never, len(hook.texts)
        await trio.sleep(3_590.0)
        await until(lambda: len(hook.texts) > asked)
        questions = system.find(names.HOOK_QUESTIONS)
        assert questions is not None
        questions.kill()
        hook.talk = passes
        await trio.sleep(300.0)
    assert any("⏰" in each for each in cast.platform.said()) == (on_failure == "open")


@pytest.mark.parametrize("talk", [strikes, holds_back])
async def test_what_a_heartbeat_says_is_as_the_hook_leaves_it(
    talk: Any, autojump_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    said = f"The oven: {WORD}.\nHEARTBEAT_ADD: look for {WORD}"
    listed = Listed("- the oven")
    cast = beating(listed, answering(said).talk)
    struck(cast, talk)
    async with open_company(autojump_clock, cast):
        await trio.sleep(FIRST + 5)
        cast.platform.write("and now?")
        await at_rest(cast)
    assert len(cast.model.requests) == 2
    known = repr(cast.model.requests[-1].lines)
    assert ("The oven: [struck]." in known) == (talk is strikes)
    assert places(cast, caplog) == []
    assert "anna: well" in cast.platform.said()


@pytest.mark.parametrize("talk", [strikes, holds_back])
async def test_what_an_agent_plans_and_reports_is_as_the_hook_leaves_it(
    talk: Any, autojump_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    model = planned(acts("look", f"say {WORD}"), f"It is {WORD}.")
    cast = ByItself(model=model)
    struck(cast, talk)
    async with open_company(autojump_clock, cast):
        await trio.sleep(3_601.0)
        await at_rest(cast)
        await trio.sleep(1.0)
    assert cast.asked(planner=True)
    assert places(cast, caplog) == []
    assert WORD not in repr(cast.logged())
    said = cast.platform.said("ops")
    assert said == (["anna: It is [struck]."] if talk is strikes else [])


async def test_what_is_kept_before_a_summary_is_as_the_hook_leaves_it(
    autojump_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    cast = Cast(model=Summer(talk=lambda _: f"It is {WORD}."), remember=Notebook())
    struck(cast)
    await converse(
        autojump_clock, cast, f"what is {WORD}?", "and now?", "/new", "well?"
    )
    assert places(cast, caplog) == []


# --- what people write ----------------------------------------------------------------


@pytest.mark.parametrize("talk", [strikes, holds_back])
async def test_a_group_overhears_nothing_that_a_hook_takes_out(
    talk: Any, autojump_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    cast = Cast(platform=group())
    struck(cast, talk)
    async with open_company(autojump_clock, cast):
        for text in (f"@anna it is {WORD}", f"my {WORD}"):
            cast.platform.write(text, sender="mal")
        cast.platform.write("@anna what did they say?", sender="bob")
        await at_rest(cast)
    assert places(cast, caplog) == []
    is_overheard = "mal]: my" in repr(cast.model.requests)
    assert is_overheard == (talk is strikes)


@pytest.mark.parametrize("talk", [strikes, holds_back])
async def test_quoted_words_are_asked_about(
    talk: Any, autojump_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    cast = Cast()
    hook = struck(cast, talk)
    async with open_company(autojump_clock, cast):
        quoted = Quoted(f"the code is {WORD}", "mia")
        cast.platform.write("is that right?", quoted=quoted)
        await at_rest(cast)
    assert [each.about.part for each in hook.asked][:2] == ["", "quote"]
    assert places(cast, caplog) == []
    assert ("the code is [struck]" in repr(cast.model.requests)) == (talk is strikes)


@pytest.mark.parametrize("talk", [strikes, holds_back])
async def test_files_and_their_captions_are_asked_about(
    talk: Any, autojump_clock: Clock
) -> None:
    documents, fetches = FakeDocuments(), FakeFetches({}).fetch
    reader = Reader(MediaConfig(), fetches, documents, FakeTranscriber("good morning"))
    cast = Cast(media=reader)
    hook = struck(cast, talk)
    plan = Attachment(
        "document", "plan.txt", "text/plain", content=f"It is {WORD}.".encode()
    )
    async with open_company(autojump_clock, cast):
        cast.platform.write("read this", attachments=(plan,))
        await at_rest(cast)
        cast.platform.write("and now?")
        await at_rest(cast)
    assert WORD not in repr(cast.model.requests)
    assert {each.about.part for each in hook.asked} == {"", "file"}
    left = "It is [struck]." if talk is strikes else "held back"
    assert all(left in repr(each.lines) for each in cast.model.requests)


async def test_words_that_come_during_a_turn_are_as_the_hook_leaves_them(
    autojump_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    searches = Says(calls=(call("consult", agents=["ben"], message="?"),), after=5.0)
    cast = pair(answering(searches), buffering=BufferingConfig(policy="steer"))
    struck(cast)
    async with open_company(autojump_clock, cast):
        cast.platform.write("search")
        await until(lambda: cast.model.requests)
        cast.platform.write(f"for {WORD}")
        await at_rest(cast)
    assert "for [struck]" in repr(cast.model.requests[-1])
    assert places(cast, caplog) == []


@pytest.mark.parametrize("policy", ["interrupt", "followup", "serial"])
async def test_words_behind_a_turn_are_as_the_hook_leaves_them(
    policy: Any, autojump_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    cast = pair(answering(Says("first", after=5.0)))
    cast.buffering = BufferingConfig(policy=policy)
    struck(cast)
    async with open_company(autojump_clock, cast):
        cast.platform.write("search")
        await until(lambda: cast.model.requests)
        cast.platform.write(f"for {WORD}")
        cast.platform.write(f"or {WORD}?")
        await at_rest(cast)
    asked = repr([each.lines for each in cast.model.requests])
    assert "for [struck]" in asked
    assert "or [struck]?" in asked
    assert places(cast, caplog) == []


async def test_lines_that_a_client_sends_along_are_asked_about(
    autojump_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    cast = Cast()
    hook = struck(cast)
    lines = (
        TranscriptLine("user", f"It is {WORD}."),
        TranscriptLine("assistant", "Good."),
    )
    async with open_company(autojump_clock, cast):
        cast.platform.history = lines
        cast.platform.write("what is it?")
        await at_rest(cast)
    assert [each.about.part for each in hook.asked][:3] == ["", "history", "history"]
    assert "It is [struck]." in repr(cast.model.requests)
    assert places(cast, caplog) == []
