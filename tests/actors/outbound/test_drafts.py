"""Proves that what is shown of an answer ends as the answer itself, in parts."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from hypothesis import given, strategies as st

from actors.journal.splitting import opened, split
from actors.outbound.draft_rules import DraftMessage, EditDraft, PlaceDraft, ReplyDrafts
from actors.outbound.drafts import ChatPacing

LINES = st.sampled_from(
    ["```python", "```", "    deep = 1", "x = [1, 2]", "", "one two three four", "`a`"]
)
TEXTS = st.lists(LINES, min_size=1, max_size=40).map("\n".join)
ASIDE = "(aside)"


@dataclass
class Chat:
    """A chat in which every call is taken, or not."""

    most: int
    draft_pace: float = 1.0
    placeholder: str = "..."
    now: float = 0.0
    screen: list[list[str]] = field(default_factory=list[list[str]])
    """What stands there, oldest first; each a list, so that it may be changed."""

    edits: list[float] = field(default_factory=list[float])

    def __post_init__(self) -> None:
        self.drafts = ReplyDrafts(self.most, self.placeholder)
        self.pacing = ChatPacing(0.0, self.draft_pace)
        self.lines: list[list[str]] = []

    def show(self) -> None:
        """Make one call, if one is due."""
        if self.now < self.pacing.draft_at:
            return
        match self.drafts.next():
            case PlaceDraft(text=text):
                self.say(text)
                number = self.drafts.next_number
                self.drafts.next_number += 1
                message = DraftMessage(number, "anna", f"r{number}", text)
                self.drafts.messages.append(message)
            case EditDraft() as change:
                self.change(change)
            case None:
                return
        self.pacing.edited(self.now)

    def say(self, text: str) -> None:
        line = [text]
        self.lines.append(line)
        self.screen.append(line)
        assert not self.most or len(text) <= self.most
        assert opened(text) is None

    def change(self, change: EditDraft, *, is_last: bool = False) -> None:
        at = self.pacing.message_at if is_last else self.pacing.draft_at
        self.now = max(self.now, at)
        self.lines[change.index][0] = change.text
        self.drafts.messages[change.index].shown = change.text
        if not is_last:
            self.edits.append(self.now)
        self.pacing.edited(self.now)
        assert not self.most or len(change.text) <= self.most
        assert is_last or opened(change.text) is None

    def deliver(self, parts: list[str]) -> None:
        for part, text in enumerate(parts):
            plan = self.drafts.finish(text, part, len(parts), "whole")
            for change in plan.changes if plan else ():
                self.change(change, is_last=True)
            if plan is None or plan.rest:
                self.screen.append([plan.rest if plan else text])
        for index in self.drafts.surplus("whole", len(parts), parts[-1]):
            self.lines[index][0] = ""

    @property
    def seen(self) -> list[str]:
        return [line[0] for line in self.screen if line[0]]


def cut(text: str, places: list[int]) -> list[str]:
    ends = [0, *sorted(place % (len(text) + 1) for place in places), len(text)]
    return [text[a:b] for a, b in pairwise(ends)]


PLACES = st.lists(st.integers(0, 1000), max_size=30)
PAUSES = st.lists(st.floats(0, 2), min_size=31, max_size=31)


def write(chat: Chat, pieces: list[str], pauses: list[float], turn: str = "t") -> None:
    at = 0
    for piece, pause in zip(pieces, pauses, strict=False):
        chat.drafts.take(turn, at, piece)
        at += len(piece)
        chat.show()
        chat.now += pause


@given(TEXTS, PLACES, PAUSES, st.sampled_from([0, 64, 90]), st.sampled_from(["", "…"]))
def test_what_stands_at_the_end_is_the_answer_in_parts(
    text: str, places: list[int], pauses: list[float], most: int, placeholder: str
) -> None:
    chat = Chat(most, placeholder=placeholder)
    write(chat, cut(text, places), pauses)
    parts = split(text, most)
    if parts:
        chat.deliver(parts)
    assert chat.seen == parts
    assert len(chat.drafts.messages) <= len(parts), "none has to be taken away"


@given(TEXTS, PLACES, PAUSES, st.floats(0.1, 3))
def test_edits_keep_their_pace_and_the_answer_does_not_wait_for_it(
    text: str, places: list[int], pauses: list[float], draft_pace: float
) -> None:
    chat = Chat(64, draft_pace=draft_pace)
    write(chat, cut(text, places), pauses)
    if parts := split(text, 64):
        chat.deliver(parts)
    for before, after in pairwise(chat.edits):
        assert after - before >= draft_pace - 1e-6
    assert chat.now <= sum(pauses) + 1e-6


@given(TEXTS, TEXTS, PLACES, PAUSES)
def test_another_attempt_s_words_take_the_place_of_the_first_s(
    first: str, second: str, places: list[int], pauses: list[float]
) -> None:
    chat = Chat(64)
    write(chat, cut(first, places), pauses)
    write(chat, cut(second, places), pauses, turn="t2")
    parts = split(second, 64)
    if parts:
        chat.deliver(parts)
        assert chat.seen == parts


@given(PLACES, PAUSES, st.integers(5, 60))
def test_words_after_something_else_stand_below_it(
    places: list[int], pauses: list[float], at: int
) -> None:
    text = "Let me look that up for you now.\n\nIt is noon, and the sun is out."
    before, after = text[:at], text[at:]
    chat = Chat(0)
    write(chat, cut(before, places), [5.0] * 31)
    start = chat.drafts.close()
    chat.screen.append([ASIDE])
    for piece in cut(after, places):
        chat.drafts.take("t", len(chat.drafts._text), piece)
        chat.show()
        chat.now += pauses[0]
    chat.deliver([text])
    assert start is not None
    above, _, below = " ".join(chat.seen).partition(ASIDE)
    assert above.split() == before.split()
    assert "".join(below.split()) == "".join(after.split())


def test_nothing_is_said_twice_below_if_nothing_was_said_since() -> None:
    drafts = ReplyDrafts(0)
    assert drafts.close() is None
    drafts.take("t", 0, "words")
    assert drafts.close() is not None
    assert drafts.close() is None


def test_lost_words_stop_the_draft_until_the_end() -> None:
    chat = Chat(0, placeholder="")
    write(chat, ["one "], [5.0])
    chat.drafts.take("t", 9, "three")
    assert chat.drafts.next() is None
    chat.drafts.take("t", 4, "two")
    assert chat.drafts.next() is None
    chat.deliver(["one two three"])
    assert chat.seen == ["one two three"]


def test_an_attempt_that_repeats_itself_takes_nothing_back() -> None:
    chat = Chat(0, placeholder="")
    write(chat, ["one two"], [5.0])
    write(chat, ["one"], [5.0], turn="t2")
    assert chat.seen == ["one two"]
    chat.drafts.take("t2", 3, " two three")
    chat.show()
    assert chat.seen == ["one two three"]


def test_how_a_draft_ends_without_an_answer() -> None:
    drafts = ReplyDrafts(20, "...")
    assert drafts.finish("sorry", 0, 1, "instead") is None
    drafts.messages = [
        DraftMessage(0, "anna", "r0", "one"),
        DraftMessage(1, "anna", "r1", "two"),
    ]
    plan = drafts.finish("sorry", 0, 1, "instead")
    assert plan is not None
    assert plan.changes == (EditDraft(1, "sorry"),)
    plan = drafts.finish("(stopped)", 0, 1, "after")
    assert plan is not None
    assert plan.changes == (EditDraft(1, "two\n\n(stopped)"),)
    assert drafts.surplus("after", 1, "(stopped)") == []
    assert drafts.surplus("nothing", 1, "") == [0, 1]
    assert drafts.finish("(stopped, and so on)", 0, 1, "after") is None, "no room"


def test_code_that_is_being_written_is_shown_as_code() -> None:
    chat = Chat(0, placeholder="")
    write(chat, ["See:\n``", "`py\nx = ", "1\n``", "`\nok"], [5.0] * 4)
    assert chat.seen == ["See:\n```py\nx = 1\n```\nok"]
    chat = Chat(0, placeholder="")
    write(chat, ["See:\n``"], [5.0])
    assert chat.seen == ["See:"]
    write(chat, ["See:\n```py\nx = "], [5.0], "2")
    assert chat.seen == ["See:\n```py\nx =\n```"]
