"""A reply is cut before it is marked up: each part fits, and means the same alone."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from actors.journal.splitting import split
from connectors.chat.markup.render import rendered
from connectors.chat.platforms import platform_of_kind
from tests.support.chat.markup_texts import DIALECTS, TEXTS, words_of, wordy

NAMES = pytest.mark.parametrize(
    "name", ["discord", "qq", "slack", "telegram", "whatsapp"]
)

ANSWER = """## How it works

The **router** asks each *session* once. See [the docs](https://docs.example.org/a_b?c=1&d=2)
or `callboard route explain`, which says, e.g., "no agent hears this":

1. Read `config.toml` & check `[agents.anna]` (it's < 2 KB).
2. Start it:
   ```sh
   callboard serve --config config.toml > log.txt 2>&1 &
   ```
3. Look at the queue:
   - waiting: *none*
   - dead: **2** (see below)

| state | count | what to do |
|---|---:|---|
| waiting | 12 | nothing |
| dead | 2 | `callboard queue retry` |

> Nothing is lost: what could not be said is kept.

```python
def answer(question: str) -> list[str]:
    return [part for part in split(question, 2_000) if part and "<" not in part]
```

"""


@NAMES
@given(text=TEXTS, most=st.integers(40, 120))
def test_each_part_fits_when_it_is_marked_up(name: str, text: str, most: int) -> None:
    dialect, measure = DIALECTS[name], platform_of_kind(name).limits.measure
    for part in split(text * 5, most, measure):
        assert dialect.size(dialect.plain(part)) <= measure.size(part) <= most
        assert 0 < dialect.size(rendered(part, dialect, most)) <= most


@NAMES
@given(text=wordy(" "), most=st.integers(100, 200))
def test_no_word_is_lost_or_doubled_by_the_cuts(
    name: str, text: str, most: int
) -> None:
    dialect, measure = DIALECTS[name], platform_of_kind(name).limits.measure
    said = [rendered(part, dialect, most) for part in split(text, most, measure)]
    assert sorted(words_of(" ".join(said))) == sorted(words_of(text)), said


@NAMES
@given(text=TEXTS, most=st.integers(30, 120), length=st.integers(0, 400))
def test_a_growing_text_keeps_its_parts(
    name: str, text: str, most: int, length: int
) -> None:
    measure, whole = platform_of_kind(name).limits.measure, text * 4
    before, after = (split(each, most, measure) for each in (whole[:length], whole))
    if measure.size(whole[:length].strip()) > most:
        assert after[: len(before) - 1] == before[:-1]


@NAMES
@pytest.mark.parametrize("most", [700, 1900, 4000])
def test_what_models_write_keeps_its_markup(name: str, most: int) -> None:
    dialect, measure = DIALECTS[name], platform_of_kind(name).limits.measure
    parts = split(ANSWER * 20, most, measure)
    for part in parts:
        assert rendered(part, dialect, most) == rendered(part, dialect)
    assert len(parts) <= 20 * len(ANSWER) * 2 / most + 1
