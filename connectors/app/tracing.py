"""Sends the steps of messages as traces, by OpenTelemetry's protocol over HTTP.

One message is one trace. Ids follow from the correlation id, so that the steps of a
message belong together without anything being kept, also over a restart. Attributes are
those of OpenTelemetry's conventions for generative AI where it has one. None of them
holds what people or agents say.

Imported only where traces are wanted: it loads OpenTelemetry.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Mapping, Sequence
from threading import Lock

import trio
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    SpanExporter,
    SpanExportResult,
)
from opentelemetry.sdk.trace.sampling import Decision, Sampler, TraceIdRatioBased
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from actors.messages.tracing import Stage, TracedStep
from actors.rules.text.limits import RecentMap
from connectors.config.app import TracingConfig
from runtime import __version__
from runtime.clock import Clock
from runtime.errors import SettingsError
from runtime.ids import millisecond_of
from runtime.telemetry.logs import EventLog
from runtime.telemetry.metrics import Counter, Metrics

LOG = EventLog("tracing")

EXPORTING = logging.getLogger("opentelemetry.exporter.otlp")
"""Says why steps cannot be sent; its warnings, one for each try, only once."""

ELSEWHERE = "OTEL_EXPORTER_OTLP_ENDPOINT, or http://localhost:4318"
"""Where steps are sent if the settings do not say it."""

SCOPE = InstrumentationScope("callboard", __version__)
SAMPLED = TraceFlags(TraceFlags.SAMPLED)
PATH = "/v1/traces"

# Chosen: a collector that does not answer must not hold up a restart.
LAST_WORDS = 3.0
"""Seconds that the last steps may take to be sent when the company stops."""

MOST_WAITING = 2_048
"""Steps that wait to be sent; further ones are dropped, and counted."""

# Chosen: some megabytes at most; messages on their way are bounded by `max_open`.
MOST_OPEN = 10_000
"""Messages of which it is known when they were stored, or what is still to be sent."""

BATCH = 512
"""Steps of one request at most, as in OpenTelemetry's own default."""

PROVIDERS = {
    "openai_responses": "openai",
    "google": "gcp.gemini",
}
"""What OpenTelemetry calls a provider, where `kind` of a model differs."""

KINDS: dict[Stage, SpanKind] = {
    "accept": SpanKind.SERVER,
    "model": SpanKind.CLIENT,
    "send": SpanKind.CLIENT,
}
"""Where a step is not internal."""

Attribute = str | int


class CountingExporter(SpanExporter):
    """Passes steps on, and counts what became of them; called in a thread.

    Args:
        most: how many may wait.
        target: where they are sent, for the log.
    """

    def __init__(
        self,
        exporter: SpanExporter,
        most: int,
        counter: Counter,
        target: str = ELSEWHERE,
    ) -> None:
        self._exporter = exporter
        self.most = most
        """How many may wait."""

        self._counter = counter
        self._target = target
        self._lock = Lock()
        self._waiting = 0
        self._fails = False

    def has_room(self) -> bool:
        """Take a place for one step; without one, count it as dropped."""
        with self._lock:
            if self._waiting < self.most:
                self._waiting += 1
                return True
        self._counter.add(1, "dropped")
        return False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send some steps; the first failure after a success is logged."""
        result = SpanExportResult.FAILURE
        try:
            result = self._exporter.export(spans)
        finally:
            with self._lock:
                self._waiting -= len(spans)
            is_sent = result is SpanExportResult.SUCCESS
            self._counter.add(len(spans), "sent" if is_sent else "failed")
            if self._fails is is_sent:
                self._tell(is_sent=is_sent)
        return result

    def _tell(self, *, is_sent: bool) -> None:
        """Log that steps cannot be sent from now on, or can be."""
        self._fails = not is_sent
        EXPORTING.setLevel(logging.WARNING if is_sent else logging.ERROR)
        if is_sent:
            LOG.info("traces are sent again", to=self._target)
        else:
            LOG.warning("traces cannot be sent", to=self._target)

    def shutdown(self) -> None:
        """Give up what is being sent."""
        self._exporter.shutdown()


class MessageTracer:
    """Makes a span of each step, and hands it to a thread that sends it.

    Args:
        kinds: `kind` of each of `[models.<name>]`.
    """

    def __init__(
        self,
        exporter: CountingExporter,
        sampler: Sampler,
        resource: Resource,
        kinds: Mapping[str, str],
        clock: Clock,
    ) -> None:
        self._exporter = exporter
        self._sampler = sampler
        self._resource = resource
        self._kinds = kinds
        self._clock = clock
        self._known: RecentMap[str, tuple[float, float]] = RecentMap(MOST_OPEN)
        self._left: RecentMap[str, tuple[int, str]] = RecentMap(MOST_OPEN)
        self._callers: RecentMap[str, str] = RecentMap(MOST_OPEN)
        self._steps = 0
        # Why bounded by us: OpenTelemetry drops without counting.
        self._processor = BatchSpanProcessor(
            exporter,
            max_queue_size=exporter.most,
            max_export_batch_size=min(exporter.most, BATCH),
        )

    def take(self, step: TracedStep) -> None:
        """Take a step that ends now; never waits."""
        cause, now = step.correlation_id, self._clock.wall()
        if step.traceparent:
            self._callers[cause] = step.traceparent
        trace_id = self._trace_of(cause)
        sampled = self._sampler.should_sample(None, trace_id, "message")
        if sampled.decision is not Decision.RECORD_AND_SAMPLE:
            return
        if step.seconds is None:
            _, began = self._known.get(cause, (now, now))
        else:
            began = now - max(step.seconds, 0.0)
        if cause not in self._known:  # what comes by the clock is not accepted
            made = millisecond_of(cause) / 1000  # for one from before a restart
            is_new = step.stage in {"accept", "route"} or made < 0
            self._known[cause] = began if is_new else made, now
        root = context_of(trace_id, number_of(cause, 8))
        if step.stage != "settle":
            own, parent = self._place(step, root)
            self._add(step, (own, parent), (began, now))
        ended = self._concluded(step)
        if ended is not None:
            self._add_root(cause, root, ended, now)

    def traceparent(self, correlation_id: str, turn: str) -> str:
        """Name the span of a turn, or of its message, for those that it calls."""
        trace_id = self._trace_of(correlation_id)
        sampled = self._sampler.should_sample(None, trace_id, "message")
        is_sent = sampled.decision is Decision.RECORD_AND_SAMPLE
        span_id = number_of(f"{turn}/turn" if turn else correlation_id, 8)
        return f"00-{trace_id:032x}-{span_id:016x}-{is_sent:02x}"

    def _trace_of(self, cause: str) -> int:
        """Give the trace of a message: its caller's, or one of its own."""
        caller = self._callers.get(cause)
        return int(caller[3:35], 16) if caller else number_of(cause, 16)

    def _place(
        self, step: TracedStep, root: SpanContext
    ) -> tuple[SpanContext, SpanContext]:
        """Give the ids of a step, and those of what it is a part of."""
        turn = root
        if step.turn:
            turn = context_of(root.trace_id, number_of(f"{step.turn}/turn", 8))
        if step.stage == "turn":
            return turn, root
        self._steps += 1
        unique = f"{step.correlation_id}/{self._clock.wall()!r}/{self._steps}"
        own = context_of(root.trace_id, number_of(unique, 8))
        return own, turn if step.stage in {"model", "tool"} else root

    def _concluded(self, step: TracedStep) -> str | None:
        """Give the outcome, if nothing more is to be done for the author."""
        left, outcome = step.parts_left, step.outcome
        if step.is_to_asker:
            before, was = self._left.get(step.correlation_id, (1, "ok"))
            left, outcome = before - 1, outcome if was in FINE else was
        if left is not None:  # kept also at the end, so that it ends once
            self._left[step.correlation_id] = left, outcome
        return outcome if left == 0 else None

    def _add(
        self,
        step: TracedStep,
        place: tuple[SpanContext, SpanContext],
        when: tuple[float, float],
    ) -> None:
        span = ReadableSpan(
            name_of(step),
            *place,
            self._resource,
            self._attributes(step),
            kind=KINDS.get(step.stage, SpanKind.INTERNAL),
            status=status_of(step.outcome),
            start_time=nanoseconds(when[0]),
            end_time=nanoseconds(when[1]),
            instrumentation_scope=SCOPE,
        )
        self._send(span)

    def _add_root(
        self, cause: str, root: SpanContext, outcome: str, now: float
    ) -> None:
        """Add the span of the whole message, from its arrival."""
        began, _ = self._known.pop(cause, (now, now))
        caller = self._callers.get(cause)
        above = caller and context_of(root.trace_id, int(caller[36:52], 16))
        span = ReadableSpan(
            "message",
            root,
            above or None,
            self._resource,
            {"callboard.correlation_id": cause, "callboard.outcome": outcome},
            kind=SpanKind.SERVER,
            status=status_of(outcome),
            start_time=nanoseconds(min(began, now)),
            end_time=nanoseconds(now),
            instrumentation_scope=SCOPE,
        )
        self._send(span)

    def _send(self, span: ReadableSpan) -> None:
        if self._exporter.has_room():
            self._processor.on_end(span)

    def _attributes(self, step: TracedStep) -> dict[str, Attribute]:
        given: dict[str, Attribute] = {"callboard.correlation_id": step.correlation_id}
        if step.agent:
            given["gen_ai.agent.name"] = step.agent
        if step.outcome != "ok":
            given["callboard.outcome"] = step.outcome
        if step.outcome not in FINE:
            given["error.type"] = step.outcome
        if step.stage in {"model", "turn"}:
            is_call = step.stage == "model"
            given["gen_ai.operation.name"] = "chat" if is_call else "invoke_agent"
            given["gen_ai.request.model"] = step.name
            kind = self._kinds.get(step.model, "callboard")
            given["gen_ai.provider.name"] = PROVIDERS.get(kind, kind)
            usage = step.usage
            given["gen_ai.usage.input_tokens"] = usage.input_tokens
            given["gen_ai.usage.output_tokens"] = usage.output_tokens
            given["gen_ai.usage.cache_read.input_tokens"] = usage.cached_tokens
        elif step.stage == "tool":
            given["gen_ai.operation.name"] = "execute_tool"
            given["gen_ai.tool.name"] = step.name
        elif step.name:
            given["callboard.connector"] = step.name
        return given

    async def aclose(self) -> None:
        """Send what waits, for some seconds at most."""
        with trio.move_on_after(LAST_WORDS, shield=True):
            await trio.to_thread.run_sync(
                self._processor.shutdown, abandon_on_cancel=True
            )
            return
        self._exporter.shutdown()


FINE = {"cancelled", "dropped", "ok", "replied"}
"""Outcomes that are no trouble: `dropped` is what no agent was meant to answer."""


def open_tracer(
    config: TracingConfig, kinds: Mapping[str, str], clock: Clock, metrics: Metrics
) -> MessageTracer | None:
    """Make what sends traces, by the settings and by OpenTelemetry's variables.

    Args:
        kinds: `kind` of each of `[models.<name>]`.

    Returns:
        None if OTEL_SDK_DISABLED is true.

    Raises:
        SettingsError: one of the variables is wrong.
    """
    if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        LOG.info("messages are not traced: OTEL_SDK_DISABLED is true")
        return None
    endpoint = config.endpoint.rstrip("/")
    if endpoint and not endpoint.endswith(PATH):
        endpoint += PATH
    headers = {name: each.reveal() for name, each in config.headers.items()}
    ratio = config.sample_ratio
    named = Resource.create(
        {"service.name": "callboard", "service.version": __version__}
    )
    counter = metrics.counter(
        "callboard_traced_steps",
        "Steps of messages for the collector of traces, by what became of them.",
        ("outcome",),
    )
    exporter = OTLPSpanExporter(endpoint or None, headers=headers or None)
    chosen = None if ratio is None else TraceIdRatioBased(ratio)
    try:
        return MessageTracer(
            CountingExporter(exporter, MOST_WAITING, counter, endpoint or ELSEWHERE),
            TracerProvider(chosen, shutdown_on_exit=False).sampler,
            named.merge(OTELResourceDetector().detect()),  # OTEL_SERVICE_NAME
            kinds,
            clock,
        )
    except ValueError as error:
        text = f"messages cannot be traced: {error}"
        raise SettingsError(text, hint="look at the variables OTEL_*") from error


def number_of(text: str, size: int) -> int:
    """Make an id of so many bytes of a text; never 0."""
    digest = hashlib.blake2b(text.encode(errors="replace"), digest_size=size).digest()
    return int.from_bytes(digest, "big") or 1


def context_of(trace_id: int, span_id: int) -> SpanContext:
    """Make the ids of a span."""
    return SpanContext(trace_id, span_id, is_remote=False, trace_flags=SAMPLED)


def name_of(step: TracedStep) -> str:
    """Name a span, as OpenTelemetry's conventions do."""
    match step.stage:
        case "model":
            return f"chat {step.name}"
        case "tool":
            return f"execute_tool {step.name}"
        case "turn":
            return f"invoke_agent {step.agent}"
        case stage:
            return stage


def status_of(outcome: str) -> Status:
    """Say how a step ended."""
    if outcome in FINE:
        return Status(StatusCode.UNSET)
    return Status(StatusCode.ERROR, outcome)


def nanoseconds(seconds: float) -> int:
    """Give Unix nanoseconds."""
    return int(seconds * 1e9)
