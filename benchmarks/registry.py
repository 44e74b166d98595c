"""Every benchmark, in the order in which a whole run takes them."""

from __future__ import annotations

from benchmarks import (
    bench_ask,
    bench_ask_thread,
    bench_commit,
    bench_conversation,
    bench_fan_in,
    bench_http,
    bench_idle,
    bench_line,
    bench_memory_write,
    bench_million,
    bench_model_call,
    bench_prompt_build,
    bench_recall,
    bench_replay,
    bench_restart,
    bench_resume,
    bench_ring,
    bench_sandbox,
    bench_sanitizer,
    bench_slow_model,
    bench_slow_turns,
    bench_soak,
    bench_spawn,
    bench_start,
    bench_tell,
)

BENCHMARKS = {
    module.BENCHMARK.name: module.BENCHMARK
    for module in (
        bench_tell,
        bench_fan_in,
        bench_ring,
        bench_ask,
        bench_ask_thread,
        bench_restart,
        bench_commit,
        bench_memory_write,
        bench_recall,
        bench_line,
        bench_http,
        bench_slow_model,
        bench_model_call,
        bench_prompt_build,
        bench_slow_turns,
        bench_start,
        bench_resume,
        bench_replay,
        bench_sandbox,
        bench_sanitizer,
        bench_idle,
        bench_conversation,
        bench_soak,
        bench_spawn,
        bench_million,
    )
}
"""Name → benchmark; `bench_<name>.py` holds it."""
