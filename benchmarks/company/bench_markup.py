"""Markup: what one part of a reply costs on its way into a platform's markup.

A long answer with headings, lists, code, a table, a quote and links is cut as Discord's
parts are, and each part is written for each platform.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from actors.journal.splitting import split
from benchmarks.figure import Benchmark, Figure, Plan
from benchmarks.stopwatch import now_ns
from connectors.chat.discord.markup import Discord
from connectors.chat.markup.render import rendered, rendered_html
from connectors.chat.platforms import platform_of_kind
from connectors.chat.slack.markup import Slack
from connectors.chat.telegram.markup import Telegram
from connectors.chat.whatsapp.markup import WhatsApp

if TYPE_CHECKING:
    from collections.abc import Callable

ANSWER = """## How it works

The **router** asks each *session* once. See [the docs](https://docs.example.org/a_b?c=1)
or `callboard route explain`, which says, e.g., "no agent hears this":

1. Read `config.toml` & check `[agents.anna]` (it's < 2 KB).
2. Look at the queue:
   - waiting: *none*
   - dead: **2**

| state | count |
|---|---:|
| waiting | 12 |

> Nothing is lost: what could not be said is kept.

```python
def answer(question: str) -> list[str]:
    return [part for part in split(question, 2_000) if part]
```

"""
MICRO = 1_000


def measure(plan: Plan) -> list[Figure]:
    """Cut `size` answers, then write each part."""
    text = ANSWER * plan.size
    begin = now_ns()
    limits = platform_of_kind("discord").limits
    parts = split(text, limits.part, limits.measure)
    figures = [Figure("cut", (now_ns() - begin) / MICRO / len(parts), "us/part")]
    for name, write in writers().items():
        begin = now_ns()
        assert all(map(write, parts))
        spent = (now_ns() - begin) / MICRO / len(parts)
        figures.append(Figure(f"written, {name}", spent, "us/part"))
    return figures


def writers() -> dict[str, Callable[[str], str]]:
    """Give what writes a part, by platform."""
    return {
        "matrix": rendered_html,
        "discord": partial(rendered, dialect=Discord()),
        "slack": partial(rendered, dialect=Slack()),
        "telegram": partial(rendered, dialect=Telegram()),
        "whatsapp": partial(rendered, dialect=WhatsApp()),
    }


BENCHMARK = Benchmark(
    name="markup",
    about="one part of a reply, 1,900 characters: cut, and written for each platform",
    full=Plan(100, 1),
    quick=Plan(3, 1),
    measure=measure,
)
