"""Proves of which kind each vendor's errors are, by its own codes and words."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given, strategies as st

from actors.errors import ModelBusyError, ModelError, ModelFault
from connectors.config.models import OpenAIModelConfig
from connectors.models import (
    anthropic as anthropic_errors,
    google as google_errors,
    provider_errors,
)
from connectors.models.http.connections import likely_base
from connectors.models.ollama import OllamaFormat
from connectors.models.provider_errors import (
    MAY_PASS,
    ErrorContext,
    Said,
    read_duration,
    read_headers,
)
from tests.fakes.models.dialects import CONFIGS
from tests.fakes.models.sayings import NOW

PROVIDER = ErrorContext("provider (m)", "")
OLLAMA = OllamaFormat(CONFIGS["ollama"](model="m"))  # type: ignore[arg-type, call-arg]


@pytest.mark.parametrize(
    ("base_url", "likely"),
    [
        ("http://127.0.0.1:1234", "http://127.0.0.1:1234/v1"),
        ("http://127.0.0.1:1234/", "http://127.0.0.1:1234/v1"),
        ("https://me:word@x.test/api?a=b", "https://x.test/api/v1"),
        ("https://x.test/v1/chat/completions", "https://x.test/v1"),
        ("https://x.test/v1", ""),
        ("https://x.test/v1/", ""),
        ("https://x.test/v1beta/openai", ""),
        ("https://x.test/openai/v1/", ""),
    ],
)
def test_the_address_that_was_meant(base_url: str, likely: str) -> None:
    assert likely_base(OpenAIModelConfig(model="m", base_url=base_url)) == likely


@pytest.mark.parametrize(
    ("status", "body", "is_told"),
    [
        (404, b'{"detail": "Not Found"}', True),
        (404, b"<html>nginx</html>", True),
        (405, b"", True),
        (404, b'{"error": {"message": "The model `m` does not exist"}}', False),
        (400, b'{"error": {"message": "bad"}}', False),
    ],
)
def test_where_nothing_is_there_it_is_said_what_to_set(
    status: int, body: bytes, *, is_told: bool
) -> None:
    base = "http://x.test/v1"
    provider = msgspec.structs.replace(PROVIDER, likely_base=base)
    error = provider.status_error(
        status, body, provider_errors.read_openai_error(body), None
    )
    assert (f"set base_url to '{base}'" in str(error)) is is_told
    assert error.kind == "bad_request"


Read = "Callable[[bytes], Said]"


def told(
    read: Callable[[bytes], Said], status: int, body: dict[str, object]
) -> ModelError:
    """Make the error of a response."""
    encoded = msgspec.json.encode(body)
    return PROVIDER.status_error(status, encoded, read(encoded), None)


def openai(message: str, **fields: object) -> dict[str, object]:
    return {"error": {"message": message, **fields}}


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (429, openai("x", code="insufficient_quota"), "quota"),
        (429, openai("x", type="insufficient_quota"), "quota"),
        (429, openai("x", code="rate_limit_exceeded"), "rate"),
        (429, openai("Rate limit reached for requests"), "rate"),
        (400, openai("x", code="billing_hard_limit_reached"), "quota"),
        (402, openai("Insufficient credits", code=402), "quota"),
        (401, openai("x", type="invalid_request_error"), "auth"),
        (401, openai("x", code="invalid_api_key"), "auth"),
        (403, openai("x", code=403, metadata={"reasons": ["violence"]}), "content"),
        (403, openai("no", code="unsupported_country_region_territory"), "auth"),
        (404, openai("x", code="model_not_found"), "bad_request"),
        (400, openai("x", code="context_length_exceeded"), "context"),
        (400, openai("This model's maximum context length is 8192"), "context"),
        (400, openai("exceeds the available context size"), "context"),
        (400, openai("x", type="exceed_context_size_error"), "context"),
        (400, openai("Image input is not supported for this model"), "vision"),
        (400, openai("image_url is only supported by certain models"), "vision"),
        (404, openai("No endpoints found that support image input"), "vision"),
        (400, openai("m is not a multimodal model"), "vision"),
        (400, openai("unknown variant `image_url`, expected `text`"), "vision"),
        (400, openai("Could not process image"), "bad_request"),
        (400, openai("image type image/tiff is not supported"), "bad_request"),
        (400, openai("x", code="content_filter"), "content"),
        (400, openai("x", type="invalid_request_error"), "bad_request"),
        (400, {"error": "a plain sentence"}, "bad_request"),
        (422, {"detail": [{"loc": ["body"]}]}, "bad_request"),
        (500, openai("x", type="server_error"), "overload"),
        (503, {}, "overload"),
        (529, openai("x", type="overloaded_error"), "overload"),
    ],
)
def test_chat_completions(
    status: int, body: dict[str, object], kind: ModelFault
) -> None:
    assert told(provider_errors.read_openai_error, status, body).kind == kind


def anthropic(kind: str, message: str = "x") -> dict[str, object]:
    return {"type": "error", "error": {"type": kind, "message": message}}


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, anthropic("invalid_request_error"), "bad_request"),
        (
            400,
            anthropic("invalid_request_error", "prompt is too long: 9 tokens > 8"),
            "context",
        ),
        (
            400,
            anthropic(
                "invalid_request_error",
                "input length and `max_tokens` exceed context limit: 9 + 9 > 8",
            ),
            "context",
        ),
        (
            400,
            anthropic("invalid_request_error", "Your credit balance is too low to use"),
            "quota",
        ),
        (
            400,
            anthropic(
                "invalid_request_error",
                "You have reached your specified API usage limits. You will regain "
                "access on 2026-01-01",
            ),
            "quota",
        ),
        (
            400,
            anthropic("invalid_request_error", "Output blocked by content filtering"),
            "content",
        ),
        (401, anthropic("authentication_error"), "auth"),
        (402, anthropic("billing_error"), "quota"),
        (403, anthropic("permission_error"), "auth"),
        (404, anthropic("not_found_error"), "bad_request"),
        (413, anthropic("request_too_large"), "context"),
        (429, anthropic("rate_limit_error"), "rate"),
        (429, anthropic("rate_limit_error", "monthly spend limit reached"), "quota"),
        (500, anthropic("api_error"), "overload"),
        (504, anthropic("timeout_error"), "timeout"),
        (529, anthropic("overloaded_error"), "overload"),
        (529, {}, "overload"),
    ],
)
def test_anthropic(status: int, body: dict[str, object], kind: ModelFault) -> None:
    assert told(anthropic_errors.read_error, status, body).kind == kind


def google(
    code: str, message: str = "x", *details: dict[str, object]
) -> dict[str, object]:
    return {
        "error": {"code": 1, "message": message, "status": code, "details": details}
    }


def quota(quota_id: str, **fields: object) -> dict[str, object]:
    violation: dict[str, object] = {"quotaId": quota_id, **fields}
    kind = "type.googleapis.com/google.rpc.QuotaFailure"
    return {"@type": kind, "violations": [violation]}


BY_MINUTE = quota("GenerateRequestsPerMinutePerProjectPerModel-FreeTier")
BY_DAY = quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier")
NEVER = quota("GenerateContentInputTokensPerModelPerMinute", quotaValue="0")
WAIT: dict[str, object] = {
    "@type": "type.googleapis.com/google.rpc.RetryInfo",
    "retryDelay": "12s",
}
BAD_KEY: dict[str, object] = {
    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
    "reason": "API_KEY_INVALID",
}
HELP: dict[str, object] = {"@type": "x/google.rpc.Help", "violations": "?", "links": []}


@pytest.mark.parametrize(
    ("status", "body", "kind", "wait"),
    [
        (429, google("RESOURCE_EXHAUSTED"), "rate", None),
        (429, google("RESOURCE_EXHAUSTED", "x", HELP, BY_MINUTE, WAIT), "rate", 12.0),
        (429, google("RESOURCE_EXHAUSTED", "x", BY_DAY, WAIT), "quota", None),
        (429, google("RESOURCE_EXHAUSTED", "x", NEVER), "quota", None),
        (429, google("RESOURCE_EXHAUSTED", "metric: y, limit: 0, m"), "quota", None),
        (429, google("RESOURCE_EXHAUSTED", "prepay balance depleted"), "quota", None),
        (400, google("INVALID_ARGUMENT", "API key not valid", BAD_KEY), "auth", None),
        (400, google("INVALID_ARGUMENT", "bad schema"), "bad_request", None),
        (
            400,
            google(
                "INVALID_ARGUMENT",
                "The input token count (9) exceeds the maximum number of tokens (8)",
            ),
            "context",
            None,
        ),
        (400, google("FAILED_PRECONDITION", "location"), "bad_request", None),
        (401, google("UNAUTHENTICATED"), "auth", None),
        (403, google("PERMISSION_DENIED"), "auth", None),
        (404, google("NOT_FOUND"), "bad_request", None),
        (500, google("INTERNAL"), "overload", None),
        (503, google("UNAVAILABLE", "The model is overloaded."), "overload", None),
        (504, google("DEADLINE_EXCEEDED"), "timeout", None),
    ],
)
def test_google(
    status: int, body: dict[str, object], kind: ModelFault, wait: float | None
) -> None:
    error = told(google_errors.read_error, status, body)
    assert error.kind == kind
    assert getattr(error, "retry_after", None) == wait


def test_google_says_errors_in_a_list_too() -> None:
    body = b"[" + msgspec.json.encode(google("UNAVAILABLE")) + b"]"
    assert google_errors.read_error(body).kind == "overload"
    assert google_errors.read_error(b"[]").kind is None


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (400, "registry.ollama.ai/library/m does not support tools", "bad_request"),
        (404, "model 'm' not found", "bad_request"),
        (400, "the input length exceeds the context length", "context"),
        (401, "unauthorized", "auth"),
        (429, "you have reached your hourly limit", "rate"),
        (500, "model runner has unexpectedly stopped", "overload"),
        (503, "server busy, please try again", "overload"),
    ],
)
def test_ollama(status: int, message: str, kind: ModelFault) -> None:
    assert told(OLLAMA.read_error, status, {"error": message}).kind == kind


READERS = [
    provider_errors.read_openai_error,
    anthropic_errors.read_error,
    google_errors.read_error,
    OLLAMA.read_error,
]


@given(
    read=st.sampled_from(READERS),
    body=st.binary(max_size=300),
    status=st.integers(200, 599),
)
def test_any_body_of_any_status_is_told(
    read: Callable[[bytes], Said], body: bytes, status: int
) -> None:
    error = PROVIDER.status_error(status, body, read(body), None)
    assert len(str(error)) < 400
    assert str(error).isprintable()
    assert isinstance(error, ModelBusyError) is (error.kind in MAY_PASS)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after-ms": "0"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after-ms": "999999999"}, 86_400.0),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:30 GMT"}, 10.0),
        ({}, None),
    ],
)
def test_waits_in_headers(headers: dict[str, str], seconds: float | None) -> None:
    assert read_headers(headers, NOW) == seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("12s", 12.0),
        ("0.5s", 0.5),
        ("0s", 0.0),
        ("37023.7s", 37_023.7),
        ("99999999s", 86_400.0),
        ("12", None),
        ("s", None),
        ("-1s", None),
        ("1m2s", None),
        ("12seconds", None),
        ("", None),
    ],
)
def test_waits_in_bodies(text: str, seconds: float | None) -> None:
    assert read_duration(text) == seconds


@given(st.text(max_size=20))
def test_any_wait_in_a_body_is_tolerated(text: str) -> None:
    seconds = read_duration(text)
    assert seconds is None or 0 <= seconds <= 86_400
