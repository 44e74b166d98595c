"""Every benchmark, in the order in which a whole run takes them."""

from __future__ import annotations

from benchmarks.company import (
    bench_awake,
    bench_conversation,
    bench_delegation,
    bench_fan_out,
    bench_interrupt,
    bench_line,
    bench_markup,
    bench_model_call,
    bench_prompt_build,
    bench_rooms,
    bench_sandbox,
    bench_sanitizer,
    bench_schedule,
    bench_slow_turns,
)
from benchmarks.kernel import (
    bench_ask,
    bench_ask_thread,
    bench_fan_in,
    bench_million,
    bench_restart,
    bench_ring,
    bench_spawn,
    bench_tell,
    bench_waits,
)
from benchmarks.server import (
    bench_broadcast,
    bench_http,
    bench_idle,
    bench_nodes,
    bench_resume,
    bench_slow_model,
    bench_soak,
    bench_start,
)
from benchmarks.store import (
    bench_commit,
    bench_engines,
    bench_memory_write,
    bench_recall,
    bench_replay,
)

BENCHMARKS = {
    module.BENCHMARK.name: module.BENCHMARK
    for module in (
        bench_tell,
        bench_fan_in,
        bench_ring,
        bench_ask,
        bench_ask_thread,
        bench_waits,
        bench_restart,
        bench_commit,
        bench_memory_write,
        bench_recall,
        bench_line,
        bench_engines,
        bench_fan_out,
        bench_rooms,
        bench_delegation,
        bench_interrupt,
        bench_http,
        bench_broadcast,
        bench_slow_model,
        bench_nodes,
        bench_model_call,
        bench_prompt_build,
        bench_slow_turns,
        bench_awake,
        bench_start,
        bench_resume,
        bench_replay,
        bench_sandbox,
        bench_sanitizer,
        bench_markup,
        bench_schedule,
        bench_idle,
        bench_conversation,
        bench_soak,
        bench_spawn,
        bench_million,
    )
}
"""Name → benchmark; `*/bench_<name>.py` holds it."""
