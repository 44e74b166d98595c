"""Whatever a model writes: nothing of it is lost, and nothing of it is raw markup."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given

from connectors.chat.discord.markup import Discord
from connectors.chat.markup.render import rendered, rendered_html
from connectors.chat.slack.markup import Slack
from connectors.chat.telegram.markup import Telegram
from tests.support.chat.markup_texts import DIALECTS, TEXTS, TagChecker, words_of, wordy

NAMES = pytest.mark.parametrize("name", DIALECTS)

STYLES = {"b", "i", "s", "blockquote"}
TELEGRAM: dict[str, set[str] | None] = {
    "b": STYLES,
    "i": STYLES,
    "s": STYLES,
    "a": STYLES,
    "blockquote": set(),
    "code": {"pre", "blockquote"},
    "pre": {"blockquote"},
}
MATRIX: dict[str, set[str] | None] = dict.fromkeys(
    [
        "p",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "ul",
        "ol",
        "li",
        "blockquote",
        "pre",
        "code",
        "a",
        "strong",
        "em",
        "s",
        "br",
        "hr",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
    ]
)
SLACK_LINK = re.compile(r"<(?:https?://|mailto:)[^<>|]+(?:\|[^<>|]+)?>", re.IGNORECASE)
# A name in a web address is a part of it: no platform calls anybody from there.
ADDRESS = re.compile(r"https?://[^\s<>]+", re.IGNORECASE)
SLACK_ESCAPE = re.compile(r"&(?:amp|lt|gt);")


@NAMES
@given(text=wordy())
def test_every_word_is_shown_once(name: str, text: str) -> None:
    said = rendered(text, DIALECTS[name])
    assert sorted(words_of(said)) == sorted(words_of(text)), said


@given(text=wordy())
def test_every_word_is_in_the_html_once(text: str) -> None:
    assert sorted(words_of(rendered_html(text))) == sorted(words_of(text))


@NAMES
@given(text=TEXTS)
def test_the_same_text_is_rendered_the_same_way_and_never_to_nothing(
    name: str, text: str
) -> None:
    said = rendered(text, DIALECTS[name])
    assert said == rendered(text, DIALECTS[name])
    assert said.strip() or not text.strip()


@given(TEXTS)
def test_telegram_takes_the_tags_and_none_is_raw(text: str) -> None:
    TagChecker(TELEGRAM).check(rendered(text, Telegram()))


@given(TEXTS)
def test_matrix_takes_the_tags_and_none_is_raw(text: str) -> None:
    TagChecker(MATRIX).check(rendered_html(text))


@given(TEXTS)
def test_slack_reads_no_brackets_but_those_of_links(text: str) -> None:
    said = SLACK_LINK.sub("", rendered(text, Slack()))
    lines = [re.sub(r"^\s*> ", "", line) for line in said.split("\n")]
    bare = SLACK_ESCAPE.sub("", "\n".join(lines))
    assert not re.search("[<>&]", bare), said


@given(TEXTS)
@example("```\n---\n@zoe_1")
@example("](https://x.org/*@everyone")
@example("@*zoe*")
@example("[@](https://x.org)zoe")
def test_nobody_is_called(text: str) -> None:
    discord = rendered(text, Discord())
    assert not re.search(r"@(?:everyone|here)|<[@#]", discord, re.IGNORECASE)
    code = re.compile(r"<code>.*?</code>|<pre>.*?</pre>", re.DOTALL)
    telegram = code.sub("", rendered(text, Telegram()))
    shown = ADDRESS.sub("", re.sub(r"<[^>]*>", "", telegram))
    assert not re.search(r"(?<![\w/.:?=&_-])@\w", shown), shown
    slack = ADDRESS.sub("", rendered(text, Slack()))
    assert not re.search(r"@(?:everyone|here|channel)", slack)


def test_who_is_allowed_may_be_called_and_nobody_else() -> None:
    text = "<@1> and <@12>, @everyone"
    said = rendered(text, Discord(frozenset({"<@1>"})))
    assert said == "<@1> and \\<\u200b@12>, @\u200beveryone"
    slack = rendered("<@U1> <@U2>", Slack(frozenset({"<@U1>"})))
    assert slack == "<@U1> &lt;@U2&gt;"
    telegram = rendered("@zoe @zoe_2", Telegram(frozenset({"@zoe"})))
    assert telegram == "@zoe @\u200bzoe_2"


@NAMES
def test_what_is_nested_too_deeply_is_said_as_it_is(name: str) -> None:
    text = ">" * 40 + " w0x"
    assert words_of(rendered(text, DIALECTS[name])) == ["w0x"]
    assert rendered_html(text) == ""


@NAMES
def test_a_wide_table_costs_little_time_and_no_words(name: str) -> None:
    text = "|a" * 500 + "\n" + "|-" * 500 + "\n" + "|w0x\n" * 5
    assert words_of(rendered(text, DIALECTS[name])) == ["w0x"] * 5


@NAMES
def test_a_long_line_costs_little_time_and_no_words(name: str) -> None:
    text = "w0x " + "x" * 200_000 + ": a:" * 5_000
    assert words_of(rendered(text, DIALECTS[name]))[0] == "w0x"
