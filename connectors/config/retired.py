"""Settings that are retired, because nobody needs them otherwise.

A file that still has one is read as before. The setting has no effect, and people are
told so, with the reason, wherever doubtful settings are told.
"""

from __future__ import annotations

from collections.abc import Mapping

RETIRED: Mapping[str, Mapping[str, str]] = {
    "AutonomousConfig": {
        "plan_lasts": "a plan that nobody has begun for an hour is out of date",
        "planner_retries": "a decision that cannot be read is asked for again twice",
    },
    "BudgetConfig": {"on_hard": "calls always end at a hard limit"},
    "CollaborationConfig": {
        "max_age": "a consultation is closed a day after its last answer",
        "max_parallel": "four agents answer a consultation at the same time",
        "max_sessions": "two agents keep the last eight consultations of a person",
    },
    "CommandsConfig": {"answer_within": "a command that looks things up has 3 seconds"},
    "ApprovalConfig": {
        "plain_words_after": "a plain yes counts a second after the question"
    },
    "CompactionConfig": {
        "retry_after": "a compaction that failed is tried again after five minutes"
    },
    "ContextConfig": {
        "max_facts": "memory.inject_limit says how many facts are shown",
        "max_summaries": "memory.summaries says how many summaries are shown",
    },
    "FetchConfig": {"max_redirects": "three redirects are followed"},
    "HeartbeatConfig": {
        "ack_chars": "HEARTBEAT_OK with up to 300 more characters says nothing"
    },
    "HiringConfig": {"max_prompt_chars": "a made agent is told 8,000 characters"},
    "HookConfig": {"restart_longest": "waits for a restart grow to a minute"},
    "McpServerConfig": {"restart_longest": "waits for a restart grow to a minute"},
    "MemorySettings": {
        "embed_batch": "32 texts are given to the embedder at once",
        "half_life_weight": "0.3 of a fact's score fades with its age",
        "hashing_dimensions": "the embedded embedder makes vectors of 256 bytes",
        "keyword_weight": "common words count for 0.3 of a score",
        "lessons": "the newest 20 lessons are shown; context.budgets bounds them, too",
        "max_notes": "one answer may hold 32 notes",
        "min_question_chars": "memory is searched for questions of 8 characters on",
        "outcomes": "the newest 15 rewards are shown; context.budgets bounds them, too",
        "sweep_every": "expired facts are looked for every hour",
        "vector_weight": "likeness of meaning counts for 0.7 of a score",
    },
    "OllamaEmbedderConfig": {"max_connections": "8 texts are embedded at once"},
    "OpenAIEmbedderConfig": {"max_connections": "8 texts are embedded at once"},
    "PresenceConfig": {"typing_every": "typing is shown again every 4 seconds"},
    "RoutingConfig": {"max_steps": "an answer has 6 steps at most"},
    "SchedulerConfig": {
        "catch_up_most": "the newest 10 missed times are made up for",
        "late_within": "what is late by less than a minute was not missed",
        "max_text": "an appointment has 2,000 characters at most",
    },
    "TracingConfig": {"max_waiting": "2,048 steps may wait to be sent"},
    "WatchdogConfig": {
        "recovered_within": "a cancelled turn has 10 seconds to end, then it is killed"
    },
    "WebhookOutConfig": {
        "at_once": "4 events are sent at the same time",
        "keep_dead_days": "events that were given up are kept for 30 days",
    },
    "WebhooksConfig": {"replay_window": "5 minutes, as Standard Webhooks recommend"},
}
"""By the type of its table and its name, why a setting is gone. Those of a platform
stand in its `Platform`."""
