"""Proves that each message becomes one trace, and that traces hold nobody up."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import httpx
import msgspec
import pytest
import trio.testing

pytest.importorskip(
    "opentelemetry.exporter.otlp.proto.http", reason="the extra otel is not installed"
)

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace.export import (
    SpanExporter,
    SpanExportResult,
)
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, TraceIdRatioBased
from opentelemetry.trace import StatusCode

from actors.config.agents import AgentConfig
from actors.config.sessions import BufferingConfig
from actors.errors import ModelError, ToolError
from actors.messages.inbound import ToolResult, ToolSpec
from actors.messages.tracing import TracedStep
from connectors.app.app import open_app
from connectors.app.tracing import CountingExporter, MessageTracer, open_tracer
from connectors.chat.platforms import serving
from connectors.config.app import OTEL_LIBRARY, TracingConfig
from connectors.settings.load import load_app
from connectors.web.openai.transport import HttpTransport
from connectors.web.request import read_traceparent
from runtime.clock import SystemClock
from runtime.errors import SettingsError
from runtime.secret import Secret
from runtime.telemetry.metrics import Metrics
from tests.fakes.company.company import (
    Cast,
    FakeModel,
    Says,
    at_rest,
    call,
    open_company,
)
from tests.fakes.sites.threaded_site import open_little_site
from tests.processes.running import write_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from opentelemetry.sdk.trace import ReadableSpan

    from actors.messages.inbound import ModelRequest, ToolCall, ToolContext
    from runtime.clock import Clock as KernelClock

    Clock = trio.testing.MockClock

WORDS = "my blood type is zero"


def end(tracer: MessageTracer) -> None:
    """Send what waits, and end the thread that sends."""
    shutdown: Callable[[], None] = tracer._processor.shutdown
    shutdown()


class Traced:
    """A company whose traces stay in memory.

    Args:
        cast: who plays.
        ratio: part of the messages that are traced.
        clock: None is the company's.
    """

    def __init__(
        self, cast: Cast, ratio: float = 1.0, clock: KernelClock | None = None
    ) -> None:
        self.kept = InMemorySpanExporter()
        self.cast = cast
        counter = cast.metrics.counter("callboard_traced_steps", "Steps.", ("outcome",))
        self.tracer = MessageTracer(
            CountingExporter(self.kept, 2048, counter),
            ALWAYS_ON if ratio == 1.0 else TraceIdRatioBased(ratio),
            Resource({"service.name": "callboard"}),
            {AgentConfig().model: "openai_responses"},
            clock or cast.clock,
        )
        cast.trace = self.tracer.take
        cast.traceparent = self.tracer.traceparent

    async def hear(self, clock: Clock, *texts: str) -> list[ReadableSpan]:
        """Have the company answer some texts; give the spans, by when they began."""
        async with open_company(clock, self.cast):
            for text in texts:
                self.cast.platform.write(text)
                await at_rest(self.cast)
        end(self.tracer)
        found = self.kept.get_finished_spans()
        return sorted(found, key=lambda each: each.start_time or 0)


class Look:
    """A tool that takes a second."""

    spec = ToolSpec("look", "", b"{}", effect="read")

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        del call, context
        await trio.sleep(1.0)
        raise ToolError(WORDS)


def look_then_say(request: ModelRequest) -> Says:
    if request.lines[-1].role == "tool":
        return Says(f"I heard {WORDS}", after=3.0)
    return Says("", calls=(call("look", words=WORDS),), after=2.0)


def looking(**fields: Any) -> Traced:
    agents = {"anna": AgentConfig(tools=("look",))}
    cast = Cast(agents=agents, model=FakeModel(look_then_say), tools=(Look(),))
    return Traced(cast, **fields)


def tree(spans: Sequence[ReadableSpan]) -> dict[str, str]:
    """Give the name of what each span is a part of, by its own."""
    ids = {each.context.span_id: each.name for each in spans if each.context}
    return {
        each.name: ids[each.parent.span_id] if each.parent else "" for each in spans
    }


def seconds(span: ReadableSpan) -> float:
    assert span.end_time is not None
    assert span.start_time is not None
    return round((span.end_time - span.start_time) / 1e9, 1)


async def test_a_message_is_one_trace_from_its_arrival_to_its_answer(
    autojump_clock: Clock,
) -> None:
    spans = await looking().hear(autojump_clock, WORDS)
    model = next(each.name for each in spans if each.name.startswith("chat "))
    assert tree(spans) == {
        "message": "",
        "accept": "message",
        "route": "message",
        "queue": "message",
        "invoke_agent anna": "message",
        model: "invoke_agent anna",
        "execute_tool look": "invoke_agent anna",
        "commit": "message",
        "send": "message",
    }
    assert len({each.context.trace_id for each in spans if each.context}) == 1
    took = {each.name: seconds(each) for each in spans}
    assert took["execute_tool look"] == 1.0
    assert took["invoke_agent anna"] == 6.0
    assert took["message"] == 6.0
    assert [seconds(each) for each in spans if each.name == model] == [2.0, 3.0]


USED = "gen_ai.usage."
MODEL = {"gen_ai.request.model": "fake-1", "gen_ai.provider.name": "openai"}
TOKENS = {
    f"{USED}input_tokens": 3,
    f"{USED}output_tokens": 2,
    f"{USED}cache_read.input_tokens": 0,
}
SHOWN: dict[str, tuple[str, dict[str, object]]] = {
    "accept": ("SERVER", {"callboard.connector": "fake"}),
    "route": ("INTERNAL", {}),
    "queue": ("INTERNAL", {}),
    "chat fake-1": ("CLIENT", {"gen_ai.operation.name": "chat", **MODEL, **TOKENS}),
    "invoke_agent anna": (
        "INTERNAL",
        {
            "gen_ai.operation.name": "invoke_agent",
            **MODEL,
            **{name: 2 * count for name, count in TOKENS.items()},
        },
    ),
    "message": ("SERVER", {"callboard.outcome": "ok"}),
    "execute_tool look": (
        "INTERNAL",
        {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "look",
            "callboard.outcome": "failed",
            "error.type": "failed",
        },
    ),
    "commit": ("INTERNAL", {"callboard.outcome": "replied"}),
    "send": ("CLIENT", {"callboard.connector": "fake"}),
}
"""All that the spans of one message have: their kinds and attributes, by their names;
and the message's correlation id, and the agent's name once an agent has it."""


async def test_spans_have_the_attributes_of_the_conventions_and_no_others(
    autojump_clock: Clock,
) -> None:
    spans = await looking().hear(autojump_clock, WORDS)
    assert {each.name for each in spans} == set(SHOWN)
    for each in spans:
        kind, own = SHOWN[each.name]
        common: dict[str, object] = {"callboard.correlation_id": "fake-1"}
        if each.name not in {"accept", "message"}:
            common["gen_ai.agent.name"] = "anna"
        assert each.kind.name == kind
        assert dict(each.attributes or {}) == common | own, each.name


async def test_no_span_holds_what_anybody_says(autojump_clock: Clock) -> None:
    spans = await looking().hear(autojump_clock, WORDS)
    assert spans
    assert WORDS not in "".join(each.to_json() for each in spans)


async def test_a_model_is_told_which_turn_asks_it(autojump_clock: Clock) -> None:
    traced = Traced(Cast())
    spans = await traced.hear(autojump_clock, "one")
    (turn,) = [each for each in spans if each.name.startswith("invoke_agent")]
    assert isinstance(traced.cast.model, FakeModel)
    (request,) = traced.cast.model.requests
    assert request.traceparent == parent_of(turn)


def parent_of(span: ReadableSpan) -> str:
    """Name a span as W3C does."""
    place = span.context
    assert place is not None
    return f"00-{place.trace_id:032x}-{place.span_id:016x}-01"


CALLER = f"00-{'ab' * 16}-{'cd' * 8}-01"


def test_a_message_of_a_caller_is_a_part_of_the_callers_trace() -> None:
    traced = Traced(Cast(), clock=SystemClock())
    accepted = msgspec.structs.replace(a_step(1), traceparent=CALLER)
    for step in (
        accepted,
        TracedStep(
            stage="commit", correlation_id="m1", seconds=0.1, parts_left=0, turn="t"
        ),
    ):
        traced.tracer.take(step)
    end(traced.tracer)
    spans = traced.kept.get_finished_spans()
    assert {parent_of(each)[3:35] for each in spans} == {"ab" * 16}
    (message,) = [each for each in spans if each.name == "message"]
    assert message.parent is not None
    assert message.parent.span_id == int("cd" * 8, 16)
    assert traced.tracer.traceparent("m1", "") == parent_of(message)


@pytest.mark.parametrize(
    ("header", "read"),
    [
        (CALLER, CALLER),
        (f"01{CALLER[2:]}-more", CALLER),
        (CALLER.upper(), ""),
        (f"ff{CALLER[2:]}", ""),
        (f"{CALLER}0", ""),
        (f"00-{'0' * 32}-{'cd' * 8}-01", ""),
        (f"00-{'ab' * 16}-{'0' * 16}-01", ""),
        ("", ""),
        ("x" * 10_000, ""),
    ],
)
def test_only_a_right_traceparent_is_taken(header: str, read: str) -> None:
    assert read_traceparent(header) == read


async def test_each_message_is_a_trace_of_its_own(autojump_clock: Clock) -> None:
    spans = await Traced(Cast()).hear(autojump_clock, "one", "two")
    roots = [each for each in spans if each.name == "message"]
    assert len(roots) == 2
    assert len({each.context.trace_id for each in spans if each.context}) == 2


async def test_messages_that_share_an_answer_end_with_it(
    autojump_clock: Clock,
) -> None:
    slow = FakeModel(lambda _: Says("late", after=10.0))
    traced = Traced(Cast(model=slow, buffering=BufferingConfig(policy="followup")))
    async with open_company(autojump_clock, traced.cast):
        for text in ("one", "two", "three"):
            traced.cast.platform.write(text)
            await trio.sleep(1)
        await at_rest(traced.cast)
    end(traced.tracer)
    spans = traced.kept.get_finished_spans()
    assert len([each for each in spans if each.name == "message"]) == 3
    assert len([each for each in spans if each.name == "invoke_agent anna"]) == 2


async def test_a_turn_that_fails_is_an_error(autojump_clock: Clock) -> None:
    model = FakeModel(lambda _: Says(error=ModelError(WORDS, kind="content")))
    spans = await Traced(Cast(model=model)).hear(autojump_clock, "hello")
    failed = {e.name for e in spans if e.status.status_code is StatusCode.ERROR}
    assert {"message", "invoke_agent anna"} <= failed
    assert WORDS not in "".join(each.to_json() for each in spans)


async def test_a_turn_that_is_stopped_is_no_error(autojump_clock: Clock) -> None:
    slow = FakeModel(lambda _: Says("late", after=100.0))
    traced = Traced(Cast(model=slow))
    async with open_company(autojump_clock, traced.cast):
        traced.cast.platform.write("hello")
        await trio.sleep(5)
        traced.cast.platform.write("/stop")
        await at_rest(traced.cast)
    end(traced.tracer)
    spans = traced.kept.get_finished_spans()
    (turn,) = (each for each in spans if each.name == "invoke_agent anna")
    assert seconds(turn) == 5.0
    assert (turn.attributes or {})["callboard.outcome"] == "cancelled"
    assert {each.status.status_code for each in spans} == {StatusCode.UNSET}


async def test_of_messages_that_are_not_sampled_nothing_is_kept(
    autojump_clock: Clock,
) -> None:
    assert await Traced(Cast(), ratio=0.0).hear(autojump_clock, "hello") == []


def a_step(number: int = 0) -> TracedStep:
    return TracedStep(
        stage="accept", correlation_id=f"m{number}", seconds=0.1, name="http"
    )


def test_a_message_ends_with_the_last_part_of_its_answer_and_once() -> None:
    traced = Traced(Cast(), clock=SystemClock())
    sent = TracedStep(stage="send", correlation_id="m1", seconds=0.1, is_to_asker=True)
    committed = TracedStep(
        stage="commit", correlation_id="m1", seconds=0.1, parts_left=2
    )
    for step in (committed, sent, sent, sent):
        traced.tracer.take(step)
    end(traced.tracer)
    names = [each.name for each in traced.kept.get_finished_spans()]
    assert names == ["commit", "send", "send", "message", "send"]


class Failing(SpanExporter):
    """A collector that is not there."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        del spans
        return SpanExportResult.FAILURE


def test_what_finds_no_room_or_no_collector_is_counted() -> None:
    metrics = Metrics()
    counter = metrics.counter("callboard_traced_steps", "Steps.", ("outcome",))
    exporter = CountingExporter(Failing(), 3, counter)
    assert [exporter.has_room() for _ in range(5)] == [True, True, True, False, False]
    exporter.export([])
    assert not exporter.has_room()
    tracer = MessageTracer(
        CountingExporter(Failing(), 3, counter),
        ALWAYS_ON,
        Resource({}),
        {},
        SystemClock(),
    )
    tracer.take(a_step())
    end(tracer)
    text = metrics.render().decode()
    assert 'callboard_traced_steps_total{outcome="dropped"} 3.0' in text
    assert 'callboard_traced_steps_total{outcome="failed"} 1.0' in text


async def test_a_served_company_sends_its_traces_to_a_collector(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "our-company")
    monkeypatch.setenv("TOKEN", "Bearer secret-of-ours")
    with open_little_site({"POST /v1/traces": (200, b"")}) as site:
        more = f"""[tracing]
is_on = true
endpoint = "{site.url}"
headers = {{ authorization = {{ env = "TOKEN" }} }}"""
        path = write_settings(tmp_path, more=more)
        config = load_app(path, {"TOKEN": "Bearer secret-of-ours"}).value
        body = {"model": "anna", "messages": [{"role": "user", "content": WORDS}]}
        async with open_app(config, serving(config)) as app:
            server = app.transports["http"]
            assert isinstance(server, HttpTransport)
            host, port = await server.wait_listening()
            async with httpx.AsyncClient(base_url=f"http://{host}:{port}") as client:
                answer = await client.post(
                    "/v1/chat/completions", json=body, headers={"traceparent": CALLER}
                )
    assert answer.status_code == 200
    assert site.headers[0]["authorization"] == "Bearer secret-of-ours"
    names = [name for each in site.bodies for name in names_in(each)]
    assert {"service our-company", "accept", "invoke_agent anna"} <= set(names)
    assert names.count("message") == 1
    assert bytes.fromhex("ab" * 16) in b"".join(site.bodies)
    assert WORDS.encode() not in b"".join(site.bodies)
    assert b'callboard_traced_steps_total{outcome="sent"}' in app.metrics.render()


def names_in(body: bytes) -> list[str]:
    """Name the spans of a request, and the service that they are of."""
    told = ExportTraceServiceRequest.FromString(body)
    found: list[str] = []
    for resource in told.resource_spans:
        pairs = {each.key: each.value for each in resource.resource.attributes}
        found.append(f"service {pairs['service.name'].string_value}")
        for scope in resource.scope_spans:
            found.extend(span.name for span in scope.spans)
    return found


def test_opentelemetrys_own_variables_count(monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(**fields: Any) -> MessageTracer | None:
        return open_tracer(TracingConfig(**fields), {}, SystemClock(), Metrics())

    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    tracer = opened(headers={"authorization": Secret("Bearer secret-of-ours")})
    assert tracer is not None
    tracer.take(a_step())
    assert tracer._exporter._waiting == 0
    end(tracer)
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "-1")
    with pytest.raises(SettingsError, match=r"schedule_delay_millis must be positive"):
        opened()
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    assert opened() is None


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('endpoint = "collector:4318"', r"tracing\.endpoint.*is no http or https"),
        ("sample_ratio = 1.5", r"tracing\.sample_ratio"),
        ('endpint = "http://x"', r"unknown key 'endpint' in tracing"),
    ],
)
def test_wrong_settings_are_named(tmp_path: Path, line: str, words: str) -> None:
    path = write_settings(tmp_path, more=f"[tracing]\nis_on = true\n{line}")
    with pytest.raises(SettingsError, match=words):
        load_app(path, {})


def test_without_the_extra_the_settings_say_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_settings(tmp_path, more="[tracing]\nis_on = true")
    assert load_app(path, {}).value.tracing.is_on
    monkeypatch.setitem(sys.modules, OTEL_LIBRARY, None)  # as if it were not there
    with pytest.raises(SettingsError, match=r"'otel' is not installed") as caught:
        load_app(path, {})
    assert "pip install 'callboard[otel]'" in str(caught.value.hint)
