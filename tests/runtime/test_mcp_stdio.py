"""Proves that servers of tools over standard input and output serve, good and bad."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING

import msgspec
import pytest
import trio

from actors.errors import ToolError
from runtime.secret import OpenText, Secret
from tests.support.mcp_bed import SERVER, Plan, running, settings, until

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("mcp", reason="the extra mcp is not installed")


def plan(mode: str = "good", **more: object) -> Plan:
    return Plan({"files": settings(mode, **more)})


async def test_its_tools_are_listed_page_by_page(tmp_path: Path) -> None:
    async with running(plan(), tmp_path) as bed:
        tools = await bed.tools()
        assert list(tools)[:2] == ["files__echo", "files__picture"]
        assert len(tools) == 7
        spec = tools["files__echo"].spec
        assert spec.description == "Says what it is told."
        assert json.loads(spec.parameters)["properties"] == {
            "text": {"type": "string", "description": "what to say"}
        }
        assert (spec.effect, spec.is_repeatable) == ("run", False)


async def test_a_call_gives_words_and_pictures(tmp_path: Path) -> None:
    async with running(plan(), tmp_path) as bed:
        said = await bed.call("files__echo", text="hello")
        seen = await bed.call("files__picture")
        failed = await bed.call("files__fail")
    assert (said.text, said.is_error) == ("echo hello", False)
    assert [image.media_type for image in seen.images] == ["image/png"]
    assert failed.is_error


async def test_it_is_given_its_own_environment_and_no_other(tmp_path: Path) -> None:
    env = {
        "OPEN": OpenText("yes"),
        "KEY": OpenText("k-", Secret("very-secret-value")),
    }
    async with running(plan(env=env), tmp_path) as bed:
        said = json.loads((await bed.call("files__environment")).text)
    assert said["OPEN"] == "yes"
    assert said["KEY"] == "k-very-secret-value"
    assert set(said) <= {"OPEN", "KEY", "PATH", "HOME", "LC_CTYPE", "PWD"}


async def test_a_server_that_dies_is_started_again(tmp_path: Path) -> None:
    async with running(plan(), tmp_path) as bed:
        with pytest.raises(ToolError, match=r"ended with code 3.*nobody knows"):
            await bed.call("files__die")
        await until(lambda: bed.count("opened") == 2)
        assert (await bed.call("files__echo", text="again")).text == "echo again"
        assert bed.count("lost") == 1


async def test_while_it_is_down_its_tools_say_so(tmp_path: Path) -> None:
    async with running(plan(restart_first=30.0), tmp_path) as bed:
        with pytest.raises(ToolError):
            await bed.call("files__die")
        offer = await bed.offer()
        assert len(offer.tools) == 7
        assert "being started again" in offer.notes[0]
        with pytest.raises(ToolError, match="code 3; it is being started again"):
            await bed.call("files__echo")


@pytest.mark.parametrize(
    ("restart", "code", "opened"),
    [("never", 3, 1), ("failed", 3, 2), ("failed", 0, 1), ("always", 0, 2)],
)
async def test_it_is_started_again_as_the_settings_say(
    restart: str, code: int, opened: int, tmp_path: Path
) -> None:
    async with running(plan(restart=restart), tmp_path) as bed:
        with pytest.raises(ToolError):
            await bed.call("files__die", text=str(code))
        await until(lambda: bed.count("lost") == 1)
        if opened == 2:
            await until(lambda: bed.count("opened") == 2)
        else:
            await trio.sleep(0.3)
            assert (await bed.shelf()).state == "ended"
        assert bed.count("opened") == opened


async def test_changed_tools_are_seen_and_the_change_is_counted(tmp_path: Path) -> None:
    async with running(plan(), tmp_path) as bed:
        await bed.call("files__change")
        await until(lambda: bed.count("tool_changed") == 1)
        tools = await bed.tools()
        assert "files__new" in tools
        assert "Ignore" in tools["files__echo"].spec.description


@pytest.mark.parametrize("mode", ["garbage", "duplicate", "complain", "banner"])
async def test_what_can_be_borne_is_borne(mode: str, tmp_path: Path) -> None:
    async with running(plan(mode), tmp_path) as bed:
        for _ in range(3):
            said = await bed.call("files__echo", text="x")
            assert said.text in {"echo x", "twice"}
        assert bed.count("lost") == 0


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("flood", "answer nothing"),
        ("junk", "messages in 10 seconds that are none"),
        ("oversize", "bytes at once"),
        pytest.param("hang", "did not answer within", marks=pytest.mark.deep),
        ("nothing", "no answer to that"),
        ("refuse", "the server refused: no way"),
    ],
)
async def test_what_cannot_be_borne_is_an_error_for_the_model(
    mode: str, reason: str, tmp_path: Path
) -> None:
    began = time.monotonic()
    async with running(plan(mode, call_timeout=2.0), tmp_path) as bed:
        with pytest.raises(ToolError, match=reason) as caught:
            await bed.call("files__echo", text="x")
        assert len(str(caught.value)) < 600
        if mode not in {"nothing", "refuse"}:
            await until(lambda: bed.count("opened") == 2)
    assert time.monotonic() - began < 25


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("exit", "ended with code 4"),
        pytest.param("mute", "did not start within 2 s", marks=pytest.mark.deep),
        ("liar", "does not speak the protocol"),
    ],
)
async def test_a_server_that_does_not_start_is_a_note(
    mode: str, reason: str, tmp_path: Path
) -> None:
    async with running(plan(mode, start_timeout=2.0), tmp_path) as bed:
        offer = await bed.offer()
        assert offer.tools == ()
        assert reason in offer.notes[0]
        await until(lambda: bed.count("lost") >= 2)


async def test_a_program_that_is_not_there_is_a_note(tmp_path: Path) -> None:
    there_is_none = msgspec.structs.replace(settings(), command="/nowhere/at/all")
    async with running(Plan({"files": there_is_none}), tmp_path) as bed:
        assert "cannot be started" in (await bed.offer()).notes[0]


@pytest.mark.parametrize(("mode", "kept"), [("endless", 256), ("odd", 1)])
async def test_lists_are_bounded_and_odd_tools_left_out(
    mode: str, kept: int, tmp_path: Path
) -> None:
    async with running(plan(mode), tmp_path) as bed:
        assert len((await bed.shelf()).listing.tools) == kept
        assert bed.count("tool_left_out") >= 2


async def test_a_call_that_nobody_waits_for_is_cancelled(tmp_path: Path) -> None:
    async with running(plan(max_calls=1), tmp_path) as bed:
        with trio.move_on_after(0.3):
            await bed.call("files__sleep", text="1")
        # There is room for one call only, so this would wait for the other.
        assert (await bed.call("files__echo", text="x")).text == "echo x"
        assert bed.count("call_timeout") == 0


async def test_more_calls_than_may_wait_are_refused(tmp_path: Path) -> None:
    refused: list[str] = []
    async with running(plan(max_calls=1), tmp_path) as bed:

        async def call() -> None:
            try:
                await bed.call("files__sleep", text="0.5")
            except ToolError as error:
                refused.append(str(error))

        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(call)
        assert refused == ["the server files has too much to do; try again later"] * 2
        assert bed.count("call_refused") == 2


async def test_nothing_is_left_of_its_program(tmp_path: Path) -> None:
    async with running(plan(), tmp_path) as bed:
        await bed.shelf()
    assert [each.process.returncode for each in bed.sandbox.programs] == [0]


async def test_what_it_said_last_is_kept_for_people_and_not_told_a_model(
    tmp_path: Path,
) -> None:
    lines = ("early", "ValueError: no such shelf", "    at main", "", "Node.js v20")
    say = f"import sys; sys.exit({chr(10).join(lines)!r})"
    dying = msgspec.structs.replace(settings(), args=("-c", say))
    async with running(Plan({"files": dying}), tmp_path) as bed:
        note = (await bed.offer()).notes[0]
        shelf = await bed.shelf()
    assert shelf.said == "ValueError: no such shelf"
    assert "its program ended with code 1" in note
    assert "shelf" not in note


async def test_what_its_command_names_may_be_read(tmp_path: Path) -> None:
    prefix = tmp_path / "language"
    (prefix / "bin").mkdir(parents=True)
    (prefix / "pyvenv.cfg").write_text("")
    program, script = prefix / "bin" / "python", tmp_path / "srv.py"
    program.symlink_to(sys.executable)
    script.write_text(SERVER.read_text())
    args = (str(script), "good", "--data", str(tmp_path))
    server = msgspec.structs.replace(settings(), command=str(program), args=args)
    async with running(Plan({"files": server}), tmp_path / "own") as bed:
        assert (await bed.call("files__echo", text="x")).text == "echo x"
        found = json.loads((await bed.call("files__environment")).text)
    readable = bed.sandbox.confinements[-1].readable
    assert {script, prefix} <= {*readable}
    assert tmp_path not in readable
    assert found["PATH"].startswith(f"{prefix / 'bin'}:")
