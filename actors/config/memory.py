"""Settings of memory: what is stored, for how long, and how much of it is recalled.

Only types, bounds and defaults. The embedder's table is in `connectors/config`.
"""

from typing import Annotated

from msgspec import Meta, Struct

from actors.config.values import Count, Seconds

Share = Annotated[float, Meta(ge=0, le=1)]
Days = Annotated[float, Meta(ge=0, le=36_500)]


class MemoryConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How agents remember; `[memory]` without the embedder."""

    enabled: bool = True
    """Whether anything is stored and recalled beyond the conversation."""

    auto_save: bool = False
    """Whether people's messages are stored too, as category `conversation`."""

    auto_save_chars: Count = 20
    """Shortest message, in characters, that is stored so."""

    person_in_groups: bool = False
    """Whether facts that a person told in private are recalled in groups, where
    everybody reads the answer.
    """

    keyword_gates: bool = False
    """Whether search, summaries and outcomes are loaded only for messages with words
    that ask for them (`remember`, `yesterday`, `result`).
    """

    recall_limit: Annotated[int, Meta(ge=1, le=50)] = 5
    """Most facts recalled from each scope."""

    inject_limit: Annotated[int, Meta(ge=0, le=50)] = 4
    """Most recalled facts shown to the model."""

    inject_chars: Count = 4_000
    """Most characters of all recalled facts shown to the model."""

    content_chars: Count = 2_000
    """Most characters of one recalled fact shown to the model."""

    min_score: Share = 0.25
    """Lowest score, 0 to 1, of a recalled fact."""

    half_life_days: Annotated[float, Meta(gt=0, le=36_500)] = 30.0
    """Half-life, in days, of the fading part of a score."""

    mmr_lambda: Share | None = None
    """Diversity of recalled facts (MMR): 1 prefers relevance, 0 difference; 0.7 is
    usual. Unset: by relevance only.
    """

    user_preference_days: Days = 90.0
    """Days for which a preference is kept after it was stored or used; 0: for ever."""

    project_context_days: Days = 30.0
    """Days for which a fact of a project is kept; 0: for ever."""

    learned_pattern_days: Days = 30.0
    """Days for which a learned pattern is kept; 0: for ever."""

    conversation_days: Days = 30.0
    """Days for which stored messages and daily log entries are kept; 0: for ever."""

    max_facts: Annotated[int, Meta(ge=10, le=100_000)] = 2_000
    """Most facts of one person or chat; one more replaces the least recently used one.
    Sticky facts are never replaced.
    """

    max_fact_chars: Annotated[int, Meta(ge=100, le=100_000)] = 2_000
    """Longest fact, in characters; a longer one is refused."""

    summaries: Annotated[int, Meta(ge=0, le=50)] = 3
    """Summaries of earlier conversations shown to the model, the newest."""

    states: Annotated[int, Meta(ge=0, le=500)] = 50
    """States that are kept and shown to the model; the oldest is dropped first."""

    sticky: Annotated[int, Meta(ge=0, le=500)] = 50
    """Sticky facts shown to the model, the newest; all are kept."""

    recall_timeout: Seconds = 2.0
    """Seconds for which a turn waits for memory; after that it continues without it and
    logs so.
    """

    daily_log: bool = True
    """Whether a file per agent and day records the facts extracted from
    conversations.
    """

    log_days: Days = 365.0
    """Days for which these files are kept; 0: for ever."""
