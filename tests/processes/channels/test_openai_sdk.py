"""Proves that the official, unmodified `openai` client can talk to the agents."""

from __future__ import annotations

from typing import TYPE_CHECKING

import openai
import pytest
import trio
import trio.testing

from tests.processes.running import PATIENCE, rows, served

if TYPE_CHECKING:
    from pathlib import Path

    from openai.types.chat import ChatCompletionMessageParam

    from tests.processes.running import Server

KEY = "a-key-of-the-tests"
CONVERSATIONS = 64
TURNS = 3


def client_of(server: Server, key: str = KEY) -> openai.OpenAI:
    return openai.OpenAI(
        base_url=f"{server.url}/v1", api_key=key, max_retries=0, timeout=PATIENCE
    )


def said(text: str) -> list[ChatCompletionMessageParam]:
    return [{"role": "user", "content": text}]


def ask(client: openai.OpenAI, text: str, agent: str = "anna") -> str:
    answer = client.chat.completions.create(model=agent, messages=said(text))
    return answer.choices[0].message.content or ""


def test_an_answer_comes_whole(tmp_path: Path) -> None:
    with served(tmp_path) as server, client_of(server) as client:
        answer = client.chat.completions.create(
            model="anna", messages=said("sum 6 * 7")
        )
    assert answer.model == "anna"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.choices[0].message.content == (
        "That is one for Ben.\n\n**ben:** 6 * 7 = 42"
    )
    assert answer.usage is not None
    assert answer.usage.total_tokens > 0


def test_an_answer_comes_word_by_word(tmp_path: Path) -> None:
    with served(tmp_path) as server, client_of(server) as client:
        stream = client.chat.completions.create(
            model="anna",
            messages=said("slowly one two three four five"),
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = list(stream)
    words = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    assert "".join(words) == "one two three four five"
    assert len([word for word in words if word]) > 2
    assert chunks[-1].usage is not None
    assert {chunk.id for chunk in chunks} == {chunks[0].id}


def test_the_agents_are_the_models(tmp_path: Path) -> None:
    with served(tmp_path) as server, client_of(server) as client:
        assert [model.id for model in client.models.list()] == ["anna", "ben"]
        assert client.models.retrieve("ben").id == "ben"
        with pytest.raises(openai.NotFoundError, match="known: anna, ben"):
            client.models.retrieve("carl")


def test_errors_are_the_classes_that_people_catch(tmp_path: Path) -> None:
    http = 'api_key = { env = "KEY" }'
    with served(tmp_path, http=http, KEY=KEY) as server:
        with client_of(server) as client:
            with pytest.raises(openai.NotFoundError, match="carl"):
                ask(client, "hello", agent="carl")
            with pytest.raises(openai.BadRequestError, match="is empty"):
                ask(client, " ")
            assert ask(client, "hello") == "you said hello"
        with (
            client_of(server, "another-key") as stranger,
            pytest.raises(openai.AuthenticationError, match="API key"),
        ):
            ask(stranger, "hello")
        assert trio.run(server.end) == 0
        assert server.log.count("request refused") == 3
        assert KEY not in server.log
        assert "Traceback" not in server.log


def test_a_model_that_refuses_is_an_error_that_says_why(tmp_path: Path) -> None:
    with (
        served(tmp_path) as server,
        client_of(server) as client,
        pytest.raises(openai.InternalServerError, match="refused to answer") as failed,
    ):
        ask(client, "break")
    assert (failed.value.status_code, failed.value.code) == (502, "model_refused")


THINKS_ELSEWHERE = """
[models.elsewhere]
kind = "openai"
model = "anna"
base_url = "{url}/v1"
api_key = {{ env = "KEY" }}

[agents.carl]
prompt = "You are Carl."
model = "elsewhere"
markers = []
"""


def test_one_company_can_be_another_s_model(tmp_path: Path) -> None:
    with served(tmp_path / "first") as first:
        more = THINKS_ELSEWHERE.format(url=first.url)
        with (
            served(tmp_path / "second", more=more, KEY=KEY) as second,
            client_of(second) as client,
        ):
            answer = ask(client, "hello", agent="carl")
            assert answer.startswith("you said ")
            assert "You are Carl." in answer
            assert answer.endswith("hello")
            assert KEY not in first.log + second.log


def async_client_of(server: Server) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(
        base_url=f"{server.url}/v1", api_key=KEY, max_retries=0, timeout=PATIENCE
    )


async def ask_in(client: openai.AsyncOpenAI, chat: str, text: str) -> str:
    answer = await client.chat.completions.create(
        model="anna",
        messages=said(text),
        extra_headers={"X-Callboard-Conversation": chat},
    )
    return answer.choices[0].message.content or ""


async def talk(client: openai.AsyncOpenAI, chat: str, heard: dict[str, str]) -> None:
    """Say the next words only when the answer to the last ones is here."""
    for turn in range(TURNS):
        words = f"canary-{chat}-{turn}"
        heard[words] = await ask_in(client, chat, words)


async def test_sixty_four_conversations_do_not_mix(tmp_path: Path) -> None:
    chats = [f"chat{number:02}" for number in range(CONVERSATIONS)]
    heard: dict[str, str] = {}
    with served(tmp_path) as server:
        async with async_client_of(server) as client, trio.open_nursery() as nursery:
            for chat in chats:
                nursery.start_soon(talk, client, chat, heard)
        assert len(heard) == CONVERSATIONS * TURNS
        assert all(answer == f"you said {words}" for words, answer in heard.items())
        assert await server.end() == 0
    for chat in chats:
        lines = rows(
            tmp_path,
            f"SELECT CAST(body AS TEXT) FROM journal WHERE stream LIKE '%{chat}%'"  # noqa: S608  our own words
            " ORDER BY sequence",
        )
        assert len(lines) == TURNS
        for turn, (body,) in enumerate(lines):
            assert f"canary-{chat}-{turn}" in str(body)
            assert str(body).count("canary-") == str(body).count(f"canary-{chat}-")
    assert "Traceback" not in server.log


async def send_without_waiting(
    client: openai.AsyncOpenAI, words: str, ended: list[str]
) -> None:
    await ask_in(client, "one-chat", words)
    ended.append(words)


async def test_one_conversation_is_answered_in_order(tmp_path: Path) -> None:
    ended: list[str] = []
    with served(tmp_path) as server:
        async with async_client_of(server) as client, trio.open_nursery() as nursery:
            nursery.start_soon(send_without_waiting, client, "later first", ended)
            while "message received" not in server.log:
                await trio.testing.wait_all_tasks_blocked(0.01)
            nursery.start_soon(send_without_waiting, client, "second", ended)
    assert ended == ["later first", "second"]
