"""Proves that a delivery ends, and is not said twice where that must not be."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, strategies as st

from actors.messages.deliveries import Abilities
from actors.outbound.retry import (
    FIRST_WAIT,
    GIVE_UP_AFTER,
    LONGEST_WAIT,
    TRIES,
    AnswerLost,
    AttemptRefused,
    AttemptStored,
    DeliveryBegins,
    DeliveryLookedUp,
    DeliveryProgress,
    Effect,
    Event,
    LetGo,
    LookUpDelivery,
    OnUnknown,
    Pause,
    PauseOver,
    PlatformBusy,
    PlatformRefused,
    PlatformTook,
    Send,
    StoreAttempt,
    StoreEnd,
    TargetGone,
)

# A day of questions a minute, and those before they are a minute apart.
MOST_BUSY = int(GIVE_UP_AFTER / LONGEST_WAIT) + 2 * TRIES

# Chosen: more than any delivery may cause; each try is a mark, a question, a look-up
# and two pauses at most.
BOUND = 6 * (TRIES + 1 + MOST_BUSY)

SAID, BUSY, REFUSED, LOST = (
    PlatformTook("r"),
    PlatformBusy("later"),
    PlatformRefused("no"),
    AnswerLost("gone"),
)
AT_ONCE, IN_HOURS, NEVER = (PlatformBusy("later", each) for each in (0.0, 9999.0, 1e9))
ANSWERS: st.SearchStrategy[Event] = st.sampled_from(
    [SAID, BUSY, AT_ONCE, IN_HOURS, NEVER, REFUSED, LOST, LOST, LOST]
)
FINDS: st.SearchStrategy[Event] = st.sampled_from(
    [DeliveryLookedUp("r"), DeliveryLookedUp(None), BUSY, AT_ONCE]
)
ABILITIES = st.builds(Abilities, is_idempotent=st.booleans(), can_look_up=st.booleans())
POLICIES: st.SearchStrategy[OnUnknown] = st.sampled_from(["resend", "hold"])
PLAIN, KNOWS_IDS = Abilities(), Abilities(is_idempotent=True)


class Play:
    """A delivery against a platform that answers as it is told.

    Args:
        sending: the delivery.
        answers: of the platform to being asked to say it; the last one repeats.
        finds: of the platform to being looked into; the last one repeats.
        has_waited: whether the delivery had when it began.
    """

    def __init__(
        self,
        sending: DeliveryProgress,
        answers: Sequence[Event],
        finds: Sequence[Event] = (DeliveryLookedUp(None),),
        *,
        has_waited: bool = False,
    ) -> None:
        self.sending = sending
        self.has_waited = has_waited
        self.answers, self.finds = list(answers), list(finds)
        self.effects: list[Effect] = []
        self.events: list[Event] = []
        self.now = 0.0
        effect = self.take(DeliveryBegins())
        while not isinstance(effect, StoreEnd):
            assert len(self.effects) < BOUND
            effect = self.take(self.answer(effect))
        self.end = effect

    def take(self, event: Event) -> Effect:
        self.events.append(event)
        effect = self.sending.on(event, self.now)
        self.effects.append(effect)
        return effect

    def answer(self, effect: Effect) -> Event:
        match effect:
            case StoreAttempt():
                return AttemptStored()
            case Send():
                return next_of(self.answers)
            case LookUpDelivery():
                return next_of(self.finds)
            case Pause(seconds=seconds):
                assert 0 <= seconds <= GIVE_UP_AFTER
                self.now += seconds
                return PauseOver()
            case StoreEnd() | LetGo():
                raise AssertionError("it has ended")

    @property
    def busy(self) -> int:
        return sum(isinstance(each, PlatformBusy) for each in self.events)

    @property
    def pauses(self) -> list[float]:
        return [each.seconds for each in self.effects if isinstance(each, Pause)]

    def count(self, kind: type) -> int:
        return sum(isinstance(each, kind) for each in self.effects)


def next_of(events: list[Event]) -> Event:
    return events.pop(0) if len(events) > 1 else events[0]


@st.composite
def plays(draw: st.DrawFn) -> tuple[Abilities, OnUnknown, bool, Play]:
    abilities: Abilities = draw(ABILITIES)
    policy: OnUnknown = draw(POLICIES)
    was_sending, has_waited = draw(st.booleans()), draw(st.booleans())
    sending = DeliveryProgress(
        abilities,
        policy,
        attempts=draw(st.integers(0, 9)),
        was_sending=was_sending,
        has_waited=has_waited,
    )
    answers = draw(st.lists(ANSWERS, min_size=1, max_size=9))
    finds = draw(st.lists(FINDS, min_size=1, max_size=9))
    play = Play(sending, answers, finds, has_waited=has_waited)
    return abilities, policy, was_sending, play


Played = tuple[Abilities, OnUnknown, bool, Play]


@given(plays())
def test_it_ends_and_asks_the_platform_no_more_than_so_often(played: Played) -> None:
    _, _, _, play = played
    assert play.count(StoreEnd) == 1
    assert play.busy <= MOST_BUSY
    assert play.count(Send) <= TRIES + 1 + play.busy
    assert play.count(LookUpDelivery) <= TRIES + play.busy
    assert play.events.count(LOST) <= TRIES


@given(plays())
def test_a_day_after_a_platform_was_busy_it_is_over(played: Played) -> None:
    _, _, _, play = played
    rest = sum(FIRST_WAIT * 2**number for number in range(TRIES))
    assert play.now <= GIVE_UP_AFTER + rest


@given(st.lists(st.sampled_from([BUSY, AT_ONCE]), min_size=1, max_size=99))
def test_no_number_of_busy_answers_is_the_end(answers: list[Event]) -> None:
    play = Play(DeliveryProgress(PLAIN, "hold"), [*answers, SAID])
    assert play.end == StoreEnd("sent", "r", len(answers) + 1)


@given(plays())
def test_after_it_was_said_nothing_follows(played: Played) -> None:
    _, _, _, play = played
    for event, effect in zip(play.events, play.effects, strict=True):
        if event in (SAID, DeliveryLookedUp("r")):
            assert effect == StoreEnd("sent", "r", play.sending.attempts)
        if event == REFUSED:
            assert isinstance(effect, StoreEnd)


@given(plays())
def test_it_is_marked_before_it_is_said_unless_that_is_idempotent_and_did_not_wait(
    played: Played,
) -> None:
    abilities, _, _, play = played
    has_waited = play.has_waited
    before: Effect | None = None
    for event, effect in zip(play.events, play.effects, strict=True):
        has_waited = has_waited or isinstance(event, PauseOver)
        if isinstance(effect, Send):
            is_due = has_waited or not abilities.is_idempotent
            assert isinstance(before, StoreAttempt) == is_due
        before = effect


@given(plays())
def test_held_it_is_never_said_while_in_doubt_without_a_look_up(
    played: Played,
) -> None:
    abilities, policy, in_doubt, play = played
    for event, effect in zip(play.events, play.effects, strict=True):
        if event == LOST:
            in_doubt = True
        elif isinstance(event, DeliveryLookedUp):
            in_doubt = False
        is_asked = isinstance(effect, Send | StoreAttempt)
        if is_asked and in_doubt and not abilities.is_idempotent:
            assert policy == "resend"
            assert not abilities.can_look_up
            in_doubt = False  # a new question, with an answer of its own


@given(plays())
def test_unknown_is_said_of_what_may_have_been_said_and_of_nothing_else(
    played: Played,
) -> None:
    _, _, in_doubt, play = played
    for event in play.events:
        if event == LOST:
            in_doubt = True
        elif event == DeliveryLookedUp(None):
            in_doubt = False
    if REFUSED not in play.events and play.end.state != "sent":
        assert play.end.state == ("unknown" if in_doubt else "dead")


@given(plays())
def test_each_asking_is_counted(played: Played) -> None:
    _, _, _, play = played
    marks = [each.attempt for each in play.effects if isinstance(each, StoreAttempt)]
    assert marks == sorted(set(marks))
    if marks:
        assert marks[-1] == play.end.attempts
    before = play.end.attempts - play.count(Send)
    assert 0 <= before <= 9


@given(plays())
def test_a_busy_platform_s_word_is_stored_where_it_ends_a_doubt(
    played: Played,
) -> None:
    _, _, in_doubt, play = played
    is_marked = False
    for event, effect in zip(play.events, play.effects, strict=True):
        in_doubt = event == LOST or (in_doubt and event != DeliveryLookedUp(None))
        is_marked = is_marked or event == AttemptStored()
        if isinstance(effect, Pause):
            is_sure = isinstance(event, PlatformBusy) and not in_doubt
            assert bool(effect.unsaid) == (is_sure and is_marked)


def test_a_busy_platform_is_given_longer_and_longer_for_a_day() -> None:
    play = Play(DeliveryProgress(PLAIN, "resend"), [BUSY])
    assert play.pauses[:8] == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]
    assert play.now == GIVE_UP_AFTER
    assert play.end == StoreEnd("dead", "later", play.count(Send))


@pytest.mark.parametrize(
    ("asked", "waits"),
    [(7.5, 7.5), (-1, 0), (9999, 9999), (1e9, GIVE_UP_AFTER), (float("nan"), 0)],
)
def test_a_platform_that_names_a_time_is_given_it(asked: float, waits: float) -> None:
    play = Play(DeliveryProgress(PLAIN, "resend"), [PlatformBusy("later", asked), SAID])
    assert play.pauses == [waits]


def test_a_platform_that_names_too_short_a_time_again_and_again_is_given_more() -> None:
    play = Play(DeliveryProgress(PLAIN, "resend"), [AT_ONCE] * 8 + [SAID])
    assert play.pauses == [0.0] * 5 + [32.0, 60.0, 60.0]


@pytest.mark.parametrize("abilities", [PLAIN, KNOWS_IDS])
def test_what_got_lost_again_and_again_is_said_after_longer_and_longer(
    abilities: Abilities,
) -> None:
    play = Play(DeliveryProgress(abilities, "resend"), [LOST])
    assert play.pauses == [1.0, 2.0, 4.0, 8.0, 16.0]
    assert play.end == StoreEnd("unknown", "gone", TRIES)


def test_after_the_one_that_was_cut_off_the_next_ones_wait_too() -> None:
    cut_off = DeliveryProgress(PLAIN, "resend", attempts=1, was_sending=True)
    play = Play(cut_off, [LOST, LOST, SAID])
    assert play.pauses == [1.0, 2.0]
    assert play.end == StoreEnd("sent", "r", 4)


def test_an_edit_that_got_lost_is_repeated_and_what_it_edits_may_be_gone() -> None:
    edit = DeliveryProgress(PLAIN, "hold", is_edit=True)
    play = Play(edit, [LOST, LOST, TargetGone(), LOST])
    assert play.pauses == [1.0, 2.0]
    assert play.end == StoreEnd("unknown", "gone", 4)


def test_busy_answers_are_not_counted_among_the_lost_ones() -> None:
    again: list[Event] = [LOST, BUSY]
    answers = [*[BUSY] * 9, *again * (TRIES - 1), SAID]
    play = Play(DeliveryProgress(PLAIN, "resend"), answers)
    assert play.end.state == "sent"


def test_cut_off_and_held_it_waits_for_a_person() -> None:
    play = Play(DeliveryProgress(PLAIN, "hold", attempts=1, was_sending=True), [SAID])
    assert play.effects == [
        StoreEnd("unknown", "the process ended while it was being said", 1)
    ]


def test_cut_off_it_is_said_once_more_where_that_is_wanted() -> None:
    play = Play(DeliveryProgress(PLAIN, "resend", attempts=1, was_sending=True), [SAID])
    assert play.effects == [StoreAttempt(2), Send(), StoreEnd("sent", "r", 2)]


@pytest.mark.parametrize("policy", ["resend", "hold"])
def test_where_it_can_be_looked_up_that_decides(policy: OnUnknown) -> None:
    able = Abilities(can_look_up=True)
    found = Play(
        DeliveryProgress(able, policy, was_sending=True),
        [SAID],
        [DeliveryLookedUp("x")],
    )
    assert found.effects == [LookUpDelivery(), StoreEnd("sent", "x", 0)]
    missing = Play(DeliveryProgress(able, policy, was_sending=True), [SAID])
    assert missing.effects == [
        LookUpDelivery(),
        StoreAttempt(1),
        Send(),
        StoreEnd("sent", "r", 1),
    ]


def test_cut_off_it_is_simply_said_again_where_its_id_is_known() -> None:
    play = Play(
        DeliveryProgress(KNOWS_IDS, "hold", attempts=1, was_sending=True), [SAID]
    )
    assert play.effects == [Send(), StoreEnd("sent", "r", 2)]


def test_an_edit_that_waited_stays_as_it_is_when_it_is_marked() -> None:
    play = Play(
        DeliveryProgress(PLAIN, "hold", is_edit=True), [BUSY, TargetGone(), BUSY, SAID]
    )
    assert play.effects == [
        Send(),
        Pause(1.0),
        StoreAttempt(2, is_edit=True),
        Send(),
        StoreAttempt(3),  # it is said beside what was to be edited
        Send(),
        Pause(2.0, "later"),
        StoreAttempt(4),
        Send(),
        StoreEnd("sent", "r", 4),
    ]


@pytest.mark.parametrize("is_edit", [True, False])
@pytest.mark.parametrize("abilities", [PLAIN, KNOWS_IDS])
def test_what_somebody_has_settled_meanwhile_is_let_go(
    abilities: Abilities, *, is_edit: bool
) -> None:
    sending = DeliveryProgress(abilities, "resend", is_edit=is_edit, has_waited=True)
    assert sending.on(DeliveryBegins(), 0.0) == StoreAttempt(1, is_edit=is_edit)
    assert sending.on(AttemptRefused("by hand"), 0.0) == LetGo("by hand")


def test_a_lost_answer_is_as_good_as_a_crash() -> None:
    held = Play(DeliveryProgress(PLAIN, "hold"), [LOST])
    assert held.effects == [StoreAttempt(1), Send(), StoreEnd("unknown", "gone", 1)]
    again = Play(DeliveryProgress(PLAIN, "resend"), [LOST, SAID])
    assert again.effects == [
        StoreAttempt(1),
        Send(),
        Pause(1.0),
        StoreAttempt(2),
        Send(),
        StoreEnd("sent", "r", 2),
    ]
