"""What people set about memory: what is kept, for how long, how much of it is recalled.

Only shapes, bounds and defaults, as in `config.py`. The embedder's table belongs to
the edges (`connectors/memory_config.py`).
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from actors.config import Count, Seconds

Share = Annotated[float, Meta(ge=0, le=1)]
Days = Annotated[float, Meta(ge=0, le=36_500)]


class MemoryConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How agents remember; `[memory]` without the embedder."""

    enabled: bool = True
    """Whether anything is remembered and recalled beyond the conversation."""

    auto_save: bool = False
    """Whether what people write is kept too, as category `conversation`."""

    auto_save_chars: Count = 20
    """Characters a message must have to be kept so."""

    min_question_chars: Count = 8
    """Characters a message must have for memory to be searched."""

    person_in_groups: bool = False
    """Whether what a person told in private is recalled when they write in a group,
    where everybody can hear it."""

    keyword_gates: bool = False
    """Whether searching, summaries and outcomes wait for words that ask for them
    (`remember`, `yesterday`, `result`); off: they are always loaded."""

    recall_limit: Annotated[int, Meta(ge=1, le=50)] = 5
    """Most facts recalled from each scope."""

    inject_limit: Annotated[int, Meta(ge=0, le=50)] = 4
    """Most recalled facts shown to the model."""

    inject_chars: Count = 4_000
    """Most characters of all recalled facts shown to the model."""

    content_chars: Count = 2_000
    """Most characters of one recalled fact shown to the model."""

    min_score: Share = 0.25
    """Least score, 0 to 1, of a recalled fact."""

    vector_weight: Share = 0.7
    """How much likeness of meaning counts."""

    keyword_weight: Share = 0.3
    """How much common words count."""

    half_life_days: Annotated[float, Meta(gt=0, le=36_500)] = 30.0
    """Days after which the part of a score that fades has faded by half."""

    half_life_weight: Share = 0.3
    """Which part of a score fades; what is sticky does not."""

    mmr_lambda: Share | None = None
    """Variety: 1 takes what fits best, 0 what is unlike the rest; 0.7 is usual. Unset:
    facts are taken as they fit."""

    user_preference_days: Days = 90.0
    """Days a preference is kept after it was told or of use; 0: for ever."""

    project_context_days: Days = 30.0
    """Days a fact of a project is kept; 0: for ever."""

    learned_pattern_days: Days = 30.0
    """Days a learned pattern is kept; 0: for ever."""

    conversation_days: Days = 30.0
    """Days that kept messages stay, and entries of daily logs; 0: for ever."""

    max_facts: Annotated[int, Meta(ge=10, le=100_000)] = 2_000
    """Most facts of one person or chat; one more takes the place of that which was
    of no use for longest. What is sticky is never given up so."""

    max_fact_chars: Annotated[int, Meta(ge=100, le=100_000)] = 2_000
    """Longest fact, in characters; a longer one is refused."""

    max_notes: Annotated[int, Meta(ge=1, le=1_000)] = 32
    """Most things remembered of one answer; the others are refused."""

    lessons: Annotated[int, Meta(ge=0, le=200)] = 20
    """Most lessons shown to the model, the newest."""

    outcomes: Annotated[int, Meta(ge=0, le=200)] = 15
    """Rewards shown to the model, the newest."""

    summaries: Annotated[int, Meta(ge=0, le=50)] = 3
    """Summaries of earlier conversations shown to the model, the newest."""

    states: Annotated[int, Meta(ge=0, le=500)] = 50
    """States shown to the model, and kept; the oldest gives way."""

    sticky: Annotated[int, Meta(ge=0, le=500)] = 50
    """Sticky facts shown to the model, the newest; all are kept."""

    recall_timeout: Seconds = 2.0
    """Seconds a turn waits for memory; later it goes on without, and says so in the
    log."""

    embed_batch: Annotated[int, Meta(ge=1, le=256)] = 32
    """Texts given to the embedder at once."""

    sweep_every: Seconds = 3_600.0
    """Seconds between two looks for what has expired."""

    daily_log: bool = True
    """Whether a file per agent and day records what was flushed from conversations."""

    log_days: Days = 365.0
    """Days for which these files are kept; 0: for ever."""
