"""Proves that `callboard chat` does what the first run promises, typed or piped."""

from __future__ import annotations

import stat
from pathlib import Path

from tests.processes.running import OFFLINE, run
from tests.processes.terminal import CTRL_C, CTRL_D, on_terminal

CHAT = ("chat", "--config", str(OFFLINE))


def test_a_piped_chat_reads_like_a_conversation(tmp_path: Path) -> None:
    done = run(*CHAT, folder=tmp_path, typed="hello, I am Sam\nwhat is 12 * 7\n")
    assert done.code == 0
    assert done.err == ""
    assert done.out == (
        "you> hello, I am Sam\n"
        "anna> Hello Sam, nice to meet you! I am Anna, the front desk."
        " What can we do for you?\n"
        "you> what is 12 * 7\n"
        "anna> That is one for Ben.\n"
        "ben> 12 * 7 = 84\n"
    )


def test_commands_are_explained(tmp_path: Path) -> None:
    done = run(*CHAT, folder=tmp_path, typed="/help\n/dance\n")
    assert (done.code, done.err) == (0, "")
    assert "/stop [all] - stop what you asked here" in done.out
    assert "There is no command /dance. /help lists all commands." in done.out


def test_failures_are_told_in_the_chat_and_end_nothing(tmp_path: Path) -> None:
    typed = "break the model\nplay ping-pong\nthank you\n"
    done = run(*CHAT, folder=tmp_path, typed=typed)
    assert done.code == 0
    assert "Traceback" not in done.said
    assert done.out.endswith("you> thank you\nanna> You are welcome!\n")


def test_without_settings_the_offline_ones_are_used_and_named(tmp_path: Path) -> None:
    done = run("chat", folder=tmp_path, typed="hello\n")
    assert done.code == 0
    assert done.err.startswith("No callboard.toml here; using the offline settings")
    assert "anna> Hello!" in done.out


def test_stop_ends_an_answer_that_is_being_written(tmp_path: Path) -> None:
    with on_terminal(*CHAT, folder=tmp_path) as terminal:
        terminal.see("you> ")
        terminal.type("tell me a story\n")
        terminal.see("anna> Once upon a time")
        terminal.type("/stop\n")
        terminal.see("(stopped)")
        terminal.see("* Stopped.\nyou> ")
        terminal.type("thank you\n")
        terminal.see("anna> You are welcome!\nyou> ")
        terminal.type(CTRL_D)
        assert terminal.end() == 0
    assert "loaf of bread" not in terminal.shown
    assert terminal.shown.endswith("you> \n")


def test_on_a_screen_ctrl_c_stops_the_answer_and_then_leaves(tmp_path: Path) -> None:
    with on_terminal(*CHAT, folder=tmp_path, term="xterm") as terminal:
        terminal.see("The front desk")  # the banner says who is here
        terminal.type("tell me a story\r")
        terminal.see("Ctrl-C stops")
        terminal.see("ferryman")  # after the two seconds that a cursor is waited for
        terminal.type(CTRL_C)
        terminal.see("(stopped)")
        terminal.type("/who\r")
        terminal.see("this is me")
        terminal.type(CTRL_C)
        assert terminal.end() == 0
    assert "Stopped." not in terminal.shown, "the answer says so already"
    assert "WARNING" not in terminal.shown
    (history,) = tmp_path.rglob("*.history")
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    assert "+tell me a story" in history.read_text()
    again = run(*CHAT, folder=tmp_path, typed="thank you\n")
    assert again.out == "you> thank you\nanna> You are welcome!\n"


def test_a_screen_gives_the_terminal_back_when_it_is_told_to_end(
    tmp_path: Path,
) -> None:
    with on_terminal(*CHAT, folder=tmp_path, term="xterm") as terminal:
        terminal.see("The front desk")
        terminal.process.terminate()
        assert terminal.end() == 0  # which looks at the terminal's state


def test_a_terminal_talks_with_the_company_that_runs(tmp_path: Path) -> None:
    """One runs the company, another joins it, in a conversation of its own."""
    with on_terminal(*CHAT, folder=tmp_path) as first:
        first.see("you> ")
        first.type("hello\n")
        first.see("anna> Hello! I am Anna")
        second = run(*CHAT, folder=tmp_path, typed="what is 3 * 4\n")
        assert (second.code, second.err) == (0, "")
        assert second.out.endswith("anna> That is one for Ben.\nben> 3 * 4 = 12\n")
        assert "3 * 4" not in first.shown
        first.type(CTRL_D)
        assert first.end() == 0


def test_what_ctrl_c_cuts_off_is_answered_next_time(tmp_path: Path) -> None:
    with on_terminal(*CHAT, folder=tmp_path) as terminal:
        terminal.see("you> ")
        terminal.type("tell me a story\n")
        terminal.see("anna> Once upon a time")
        terminal.type(CTRL_C)
        # Ctrl-C is how people leave a chat: that is no failure.
        assert terminal.end() == 0
    assert terminal.shown.endswith("^C\n")
    assert "Traceback" not in terminal.shown
    with on_terminal(*CHAT, folder=tmp_path) as terminal:
        terminal.see("a time")
        terminal.type("/quit\n")
        assert terminal.end() == 0


def test_an_answer_owed_is_said_once(tmp_path: Path) -> None:
    with on_terminal(*CHAT, folder=tmp_path) as terminal:
        terminal.see("you> ")
        terminal.type("hello\n")
        terminal.see("anna> Hello! I am Anna")
        terminal.see("you> ")
        terminal.type(CTRL_C)
        assert terminal.end() == 0
    again = run(*CHAT, folder=tmp_path, typed="thank you\n")
    assert again.out == "you> thank you\nanna> You are welcome!\n"


def test_another_agent_and_another_name_can_be_chosen(tmp_path: Path) -> None:
    done = run(*CHAT, "--agent", "ben", folder=tmp_path, typed="what is 3 * 4\n")
    assert done.out == "you> what is 3 * 4\nben> 3 * 4 = 12\n"
    wrong = run(*CHAT, "--agent", "bne", folder=tmp_path)
    assert wrong.code == 2
    assert "there is no agent 'bne'; known: anna, ben" in wrong.err


def test_a_line_that_is_too_long_is_refused_whole(tmp_path: Path) -> None:
    done = run(*CHAT, folder=tmp_path, typed="word " * 60_000 + "\nthank you\n")
    assert done.code == 0
    assert done.out.count("you> ") == 2
    assert "* not taken: the message has 299999 characters, 100000 are" in done.out
    assert done.out.endswith("you> thank you\nanna> You are welcome!\n")
