"""Proves that `callboard play` plays a room to its end, and tells who was not heard."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.processes.running import (
    OFFLINE,
    ROOT,
    Finished,
    rows,
    run,
    run_here,
    write_settings,
)

EXAMPLE = ROOT / "config" / "rooms" / "figures.txt"


def play(folder: Path, text: str, *options: str, **variables: str) -> Finished:
    """Play a room with the agents of the tests, anna and ben."""
    settings = write_settings(folder)
    (folder / "room.txt").write_text(text, encoding="utf-8")
    name = () if "-" in options else ("--config", settings.name)
    given = [each for each in options if each != "-"]
    arguments = ("play", "room.txt", *name, *given)
    return run_here(*arguments, folder=folder, admin_port=0, **variables)


def test_the_example_is_played_the_same_way_every_time(tmp_path: Path) -> None:
    first, second = (run("play", str(EXAMPLE), folder=tmp_path) for _ in range(2))
    assert (first.code, first.err) == (0, "")
    assert first.out == second.out
    assert "anna> Bob has the books.\nbob> Revenue less costs: " in first.out
    assert "Ada> /stop@clio\n* There is nothing of yours to stop." in first.out
    assert not list(tmp_path.iterdir())


def test_small_talk_is_told_at_the_end_with_its_line_and_the_reason(
    tmp_path: Path,
) -> None:
    done = play(tmp_path, "Ada: hi\nAda: @anna sum 12 * 7\n\nGrace: nice\n")
    assert (done.code, done.err) == (0, "")
    assert done.out == (
        "Ada> hi\n"
        "Ada> @anna sum 12 * 7\n"
        "anna> That is one for Ben.\n"
        "ben> 12 * 7 = 84\n"
        "Grace> nice\n"
        "\n"
        "Not answered, of 4 messages:\n"
        "LINE  FROM   FOR  STATE    WHY                                WORDS\n"
        "1     Ada    -    dropped  not_addressed: no agent was meant  hi\n"
        "4     Grace  -    dropped  not_addressed: no agent was meant  nice\n"
    )


def test_when_all_are_answered_that_is_said(tmp_path: Path) -> None:
    done = play(tmp_path, "Ada: @anna hi\n")
    said = "Ada> @anna hi\nanna> you said hi\n"
    assert done.out == f"{said}\nAll were answered: 1 of 1 messages.\n"


def test_a_line_waits_until_the_room_is_quiet_unless_it_says_otherwise(
    tmp_path: Path,
) -> None:
    slow = "Ada: @anna later one\nAda{}: @anna two\n"
    patient = play(tmp_path, slow.format(""))
    assert patient.out.index("anna> ") < patient.out.index("Ada> @anna two")
    hasty = play(tmp_path, slow.format(" (at once)"))
    assert hasty.out.index("anna> ") > hasty.out.index("Ada> @anna two")
    paced = play(tmp_path, slow.format(""), "--pace", "0")
    assert paced.out.index("anna> ") > paced.out.index("Ada> @anna two")


def test_a_stop_comes_when_an_answer_has_begun(tmp_path: Path) -> None:
    text = "Ada: @anna slowly " + "word " * 200 + "\nAda: /stop@anna\n"
    done = play(tmp_path, text)
    assert "* Stopped." in done.out
    assert "cancelled  stopped: somebody said /stop" in done.out


def test_an_agent_that_never_answers_is_waited_for_no_longer_than_said(
    tmp_path: Path,
) -> None:
    done = play(tmp_path, "Ada: @anna never\nAda: hi\n", "--patience", "0.5")
    assert done.code == 0
    assert done.out.count("* not quiet within 0.5 s; going on all the same") == 2
    assert "still under way when the play was over  @anna never" in done.out


def test_who_replies_is_shown_with_whom(tmp_path: Path) -> None:
    text = "Ada (reply to ben): @anna hi\nAda (reply to anna): thanks\nwait 0.1\n"
    done = play(tmp_path, text)
    assert "* ben has said nothing yet: this replies to nobody\n" in done.out
    assert "Ada (to anna)> thanks\n" in done.out


def test_whoever_is_not_let_in_is_told_so_and_stands_in_the_list(
    tmp_path: Path,
) -> None:
    access = 'access = { allowed_roles = ["admin"], group_people = "admitted" }'
    settings = write_settings(tmp_path, http=access)
    text = "people: Ada (admin), Eve\nAda: @anna hi\nEve: @anna hi\n"
    (tmp_path / "room.txt").write_text(text, encoding="utf-8")
    options = ("--config", settings.name, "--connector", "http")
    done = run_here("play", "room.txt", *options, folder=tmp_path)
    assert "Ada> @anna hi\nanna> you said hi\nEve> @anna hi\n* not taken: " in done.out
    assert "Not answered, of 2 messages:" in done.out
    assert "3     Eve   -    refused  Eve is not let in here  @anna hi" in done.out


def test_a_database_that_is_named_is_kept(tmp_path: Path) -> None:
    done = play(tmp_path, "Ada: hi\n", "--db", "callboard.db", "--connector", "http")
    assert done.code == 0
    query = "SELECT connector, state, reason FROM inbox"
    assert rows(tmp_path, query) == [("http", "dropped", "not_addressed")]
    again = play(tmp_path, "Ada: ho\n", "--db", "callboard.db")
    assert "Not answered, of 1 messages:" in again.out


def test_settings_named_in_the_play_come_before_those_of_the_environment(
    tmp_path: Path,
) -> None:
    text = "settings: callboard.toml\nAda: @anna hello\n"
    done = play(tmp_path, text, "-", CALLBOARD_CONFIG=str(OFFLINE))
    assert "anna> you said hello" in done.out
    done = play(tmp_path, text, "-", "--config", str(OFFLINE))
    assert "anna> Hello! I am Anna" in done.out


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("Ada: hi\nnonsense\n", "room.txt:2: this cannot be read\n"),
        ("agents: ana\nAda: hi\n", "room.txt:1: there is no agent 'ana'"),
        ("Ada: \udcff\n", "room.txt:1: this is no UTF-8 text\n"),
        ("settings: nix.toml\nAda: hi\n", "nix.toml: cannot be read"),
    ],
)
def test_a_wrong_play_is_refused_with_its_line(
    text: str, error: str, tmp_path: Path
) -> None:
    write_settings(tmp_path)
    file = tmp_path / "room.txt"
    file.write_text(text, encoding="utf-8", errors="surrogateescape")
    done = run_here("play", "room.txt", folder=tmp_path)
    assert (done.code, done.out) == (1, "")
    assert error in done.err


def test_a_play_that_is_not_there_is_told(tmp_path: Path) -> None:
    done = run_here("play", "room.txt", folder=tmp_path)
    assert done.code == 1
    assert "room.txt: this play cannot be read: No such file" in done.err
    assert "hint: give the path" in done.err
