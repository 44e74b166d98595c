"""Proves that a play is read as it is meant, or refused, each mistake at its line."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from connectors.chat.terminal.playback import (
    LONGEST_WAIT,
    MOST_LINES,
    Cue,
    Play,
    Wait,
    check_agents,
    read_play,
)
from runtime.errors import SettingsError
from tests.support.tiers import examples

AGENTS = ("anna", "Bob")
HEADS = "room: kitchen\npeople: Ada, Grace\nagents: ANNA, bob\nsettings: a.toml\n"


def problems(text: str, *, agents: tuple[str, ...] = AGENTS) -> dict[int, str]:
    """Give what is wrong with a play, by line."""
    with pytest.raises(SettingsError) as caught:
        check_agents(read_play(text, "play.txt"), agents, "play.txt")
    found = caught.value.problems
    assert all(str(each).startswith("play.txt") for each in found)
    return {each.line: f"{each.text} {each.hint}".strip() for each in found}


def test_a_play_says_who_is_there_and_who_says_what() -> None:
    play = read_play(f"# hello\n\n{HEADS}Ada: morning\nGrace : hi: there\n", "x")
    assert play.steps == (Cue(7, "Ada", "morning"), Cue(8, "Grace", "hi: there"))
    assert (play.room, play.settings) == ("kitchen", "a.toml")
    assert play.people == ("Ada", "Grace")
    assert check_agents(play, AGENTS, "x").agents == ("anna", "Bob")


def test_people_may_be_something_on_their_platform() -> None:
    play = read_play("people: Ada (admin staff), Grace, Eve ()\nAda: hi", "x")
    assert play.people == ("Ada", "Grace", "Eve")
    assert play.roles == {"Ada": ("admin", "staff"), "Eve": ()}


def test_without_headings_everybody_is_there() -> None:
    play = check_agents(read_play("Ada: hi", "x"), AGENTS, "x")
    assert (play.people, play.agents, play.room) == (("Ada",), AGENTS, "")


def test_how_something_is_said_stands_in_brackets() -> None:
    text = "Ada (reply to bob): a\nAda (at once): b\nAda (at once, reply to Bob): c"
    first, second, third = read_play(text, "x").steps
    assert first == Cue(1, "Ada", "a", reply_to="bob")
    assert second == Cue(2, "Ada", "b", is_at_once=True)
    assert third == Cue(3, "Ada", "c", reply_to="Bob", is_at_once=True)


def test_an_indented_line_goes_on_and_a_wait_waits() -> None:
    play = read_play("Ada: one\n  two\nwait 2.5 s\nwait 0\nAda:\n three", "x")
    said, *waits, last = play.steps
    assert (said, last) == (Cue(1, "Ada", "one\ntwo"), Cue(5, "Ada", "three"))
    assert waits == [Wait(3, 2.5), Wait(4, 0.0)]


def test_each_mistake_is_told_at_its_line() -> None:
    found = problems(
        f"  too soon\n{HEADS}what is this\nwait x\nAdda: hello\nAda (loudly): hi\n"
        "Ada:\nroom: late\n wait\nwait 99999999999"
    )
    assert sorted(found) == [1, 6, 7, 8, 9, 10, 11, 12, 13]
    assert "nobody did" in found[1]
    assert "write `Ada: words`" in found[6]
    assert found[8] == (
        "'Adda' is not among the people of line 3 Did you mean Ada? known: Ada, Grace"
    )
    assert "nobody speaks like this: (loudly)" in found[9]
    assert "before the first words" in found[11]
    assert f"0 to {LONGEST_WAIT:g}" in found[13]


def test_headings_stand_once_name_somebody_and_nobody_twice() -> None:
    found = problems("people: Ada, ada\nroom:\nagents: bob\nagents: anna\nAda: hi")
    assert sorted(found) == [1, 2, 4]
    assert "stands in line 3" in found[4]


def test_who_is_not_there_cannot_be_replied_to() -> None:
    found = problems(
        "agents: ana\nBOB: hi\nAda (reply to bob): a\nEve (reply to Al): b"
    )
    assert found[1] == (
        "there is no agent 'ana' in the settings Did you mean anna? known: anna, Bob"
    )
    assert "is an agent, and speaks for itself" in found[2]
    assert "Al is not in this room" in found[4]
    assert "has said nothing yet" in problems("Ada (reply to Al): a\nAl: b")[1]


@pytest.mark.parametrize("text", ["", "# nothing\n", "room: kitchen\n"])
def test_a_play_in_which_nobody_speaks_is_none(text: str) -> None:
    assert "nobody says anything" in problems(text)[0]


def test_a_play_has_an_end() -> None:
    found = problems("Ada: hi\n" * (MOST_LINES + 5))
    assert list(found) == [MOST_LINES + 1]


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        play = read_play(text, "x")
    except SettingsError:
        return
    assert isinstance(play, Play)
    assert play.steps


NAMES = st.from_regex(r"[A-Z][a-z]{0,8}", fullmatch=True)
WORDS = st.from_regex(r"[\w@?!.:,()-]+( [\w@?!.:,()-]+){0,5}", fullmatch=True)


@settings(max_examples=examples(40, deep=400))
@given(st.lists(st.tuples(NAMES, WORDS), min_size=1))
def test_what_is_written_is_what_is_said(lines: list[tuple[str, str]]) -> None:
    text = "\n".join(f"{name}: {words}" for name, words in lines)
    play = read_play(text, "x")
    cues = [each for each in play.steps if isinstance(each, Cue)]
    assert [(cue.speaker, cue.text) for cue in cues] == lines
