"""Any Markdown, and what can be checked of what becomes of it."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from hypothesis import strategies as st

from connectors.chat.discord.markup import Discord
from connectors.chat.markup.dialect import Dialect, Plain
from connectors.chat.qq.markup import QQ
from connectors.chat.slack.markup import Slack
from connectors.chat.telegram.markup import Telegram
from connectors.chat.whatsapp.markup import WhatsApp

DIALECTS: dict[str, Dialect] = {
    "discord": Discord(),
    "qq": QQ(),
    "slack": Slack(),
    "telegram": Telegram(),
    "whatsapp": WhatsApp(),
    "plain": Plain(),
}

SIGNS = [
    *"*_~`|[]()<>#-+.!@&\\:/ \n\ta1é\U0001f98a",
    *("**", "__", "~~", "``", "```\n", "~~~\n", "\n\n", "    ", "- ", "1. ", "> "),
    *("# ", "---\n", "| a ", "|---|\n", "](https://x.org/", "<https://y.org>", "&lt;"),
    *("https://z.org/_a_", "<b>", "</b>", "<!--", "&#10;", "[ ] ", "[x] ", "![", "2) "),
    *("@everyone", "@here", "<@1>", "<@&2>", "<#3>", "<!channel>", "<!here>", "@zoe_1"),
    *("tg://user?id=1", "javascript:", "mailto:a@b.org", "&amp;", '"', "'", "\x00"),
]
TEXTS = st.lists(st.sampled_from(SIGNS), max_size=40).map("".join)

FRAMES = [
    *(
        "{}",
        "**{}**",
        "*{}*",
        "~~{}~~",
        "`{}`",
        "_{}_",
        "({})",
        "[{}]",
        "[{}](https://x)",
    ),
    *(
        "\n- {}",
        "\n  - {}",
        "\n1. {}",
        "\n> {}",
        "\n# {}",
        "\n\n{}",
        "\n    {}",
        "\n\t{}",
    ),
    *("\n```\n{}\n```\n", "\n~~~\n{}", "\n| {} ", "|{}", "\n|---|\n{}", "\n{}\n---\n"),
    *("\n{}\n|---|---|\n", "<b>{}</b>", "<!-- {} -->", "&{};", "\\{}", "\n- [x] {}"),
    *(
        "![{}](https://y 'z')",
        "[a](b{})",
        "[a](https://c 'd{}')",
        "\n- - - {}",
        "\n>>>> {}",
    ),
    *("[{}]: https://e\n", "[{}][f]", "* {}", "\n2) {}", "\n\n\n", "\n```py\n", " "),
]


@st.composite
def wordy(draw: st.DrawFn, between: str = "") -> str:
    """Give Markdown in which each word, `w0x`, `w1x`, … stands once."""
    frames = draw(st.lists(st.sampled_from(FRAMES), max_size=20))
    return between.join(frame.format(f"w{at}x") for at, frame in enumerate(frames))


def words_of(text: str) -> list[str]:
    """Give the words, in their order."""
    return re.findall(r"w\d+x", text)


class TagChecker(HTMLParser):
    """Fails on a tag that is not allowed, or not where it stands.

    Args:
        allowed: names of tags, with the names of those they may stand in; None: any.
    """

    def __init__(self, allowed: dict[str, set[str] | None]) -> None:
        super().__init__(convert_charrefs=False)
        self._allowed = allowed
        self._open: list[str] = []

    def check(self, html: str) -> None:
        """Read a text."""
        self.feed(html)
        self.close()
        assert self._open == [], html

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in self._allowed, tag
        around = self._allowed[tag]
        assert around is None or around >= set(self._open), (tag, self._open)
        for name, value in attrs:
            assert name in {"href", "class", "start", "style"}, name
            assert name != "href" or re.match(
                r"(?:https?://|mailto:)", value or "", re.IGNORECASE
            )
        if tag not in {"br", "hr"}:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in {"br", "hr"}:
            assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        assert "<" not in data, data
        assert "&" not in data, data

    def handle_entityref(self, name: str) -> None:
        assert name in {"amp", "lt", "gt", "quot"}, name

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    def handle_charref(self, name: str) -> None:
        assert name == "x27", name
