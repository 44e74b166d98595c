"""A program answers as a model: its sessions, its stops, its failures, its secrets."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import msgspec
import pytest
import trio

from actors.config.agents import AgentConfig
from actors.errors import ModelBusyError, ModelError, ModelFault, ModelRefusedError
from actors.messages.inbound import (
    Address,
    Image,
    ModelAnswer,
    ModelRequest,
    ToolContext,
    TranscriptLine,
)
from actors.models.catalogue import Prices
from connectors.app.models import Stock
from connectors.app.program_servers import preparing
from connectors.app.tool_sources import allotted, skills_of
from connectors.config.app import AppConfig
from connectors.config.mcp import McpServerConfig, SkillsConfig
from connectors.config.models import CliModelConfig
from connectors.config.tools import SandboxConfig
from connectors.models.program import (
    CliModel,
    ProgramPlace,
    folder_name,
    leave_as_it_is,
)
from connectors.sandbox.plan import Finished, Territory
from connectors.sandbox.runner import LateSandbox
from connectors.skills.source import SkillSource, Using
from runtime.clock import SystemClock
from runtime.secret import Secret
from tests.fakes.media import PNG
from tests.fakes.models import cli_program
from tests.fakes.tools.sandbox import FakeSandbox

PROGRAM = Path(cli_program.__file__).resolve()
KEY = "sk-of-the-program"
CONFIG = CliModelConfig(
    command=(sys.executable, str(PROGRAM)),
    secrets={"ANTHROPIC_API_KEY": Secret(KEY)},
    variables={"IS_SANDBOX": "1"},
    timeout=30.0,
)
HISTORY = (
    TranscriptLine("user", "first", name="zoe"),
    TranscriptLine("assistant", "yes"),
)


class Program:
    """A model program in a folder of its own."""

    def __init__(self, folder: Path, config: CliModelConfig = CONFIG) -> None:
        self.folder = folder
        self.sandbox = FakeSandbox()
        ground = ProgramPlace(self.sandbox, folder, pauses=(0.0,) * 5)
        self.model = CliModel(config, ground)
        self.spoken: list[str] = []

    async def ask(
        self,
        text: str,
        *,
        resume: str = "",
        images: tuple[Image, ...] = (),
        notes: tuple[str, ...] = (),
        owner: str = "",
    ) -> ModelAnswer:
        asked = TranscriptLine("user", text, name="zoe", images=images)
        request = ModelRequest(
            model="sonnet",
            agent="anna",
            correlation_id="c",
            system="Be brief.",
            lines=(*HISTORY, asked),
            conversation="anna/http/room",
            resume=resume,
            notes=notes,
            owner=owner,
        )
        return await self.model.answer(request, self.spoken.append)

    @property
    def home(self) -> Path:
        return self.folder / "anna" / folder_name("anna/http/room")


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


async def test_its_result_is_the_answer_and_its_session_comes_back(
    program: Program,
) -> None:
    answer = await program.ask("say hello there")
    assert answer.text == "hello there"
    assert answer.resume == "session-0"
    assert answer.usage.input_tokens == 12
    assert answer.usage.cached_tokens == 7
    assert program.spoken == ["hello there"]
    assert set(program.sandbox.owners) == {program.model._name}


class HangingSandbox(FakeSandbox):
    """Runs programs that never end."""

    def __init__(self) -> None:
        super().__init__()
        self.prompts: list[bytes] = []
        self._news = trio.Event()

    async def run(self, *_: object, stdin: bytes = b"", **__: object) -> Finished:
        self.prompts.append(stdin)
        self._news.set()
        await trio.sleep_forever()
        raise AssertionError

    async def has_begun(self, words: bytes) -> None:
        with trio.fail_after(60):
            while not any(words in each for each in self.prompts):
                self._news = trio.Event()
                await self._news.wait()


async def test_whoever_asks_much_leaves_a_place_to_somebody_else(
    tmp_path: Path,
) -> None:
    config = msgspec.structs.replace(CONFIG, max_at_once=2)
    program, sandbox = Program(tmp_path, config), HangingSandbox()
    program.model = CliModel(config, ProgramPlace(sandbox, tmp_path))

    async def ask(name: str) -> None:
        await program.ask(f"of {name}", owner=f"chat/{name}")

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(ask, "ada")
        await sandbox.has_begun(b"of ada")
        nursery.start_soon(ask, "bob")
        await sandbox.has_begun(b"of bob")
        nursery.cancel_scope.cancel()
    assert len(sandbox.prompts) == 2


async def test_a_session_that_goes_on_is_told_only_the_newest_words(
    program: Program,
) -> None:
    first = await program.ask("recall")
    again = await program.ask("recall", resume=first.resume)
    assert (first.text, again.text) == ("1 True", "2 False")
    assert again.resume == first.resume


async def test_a_lost_session_is_begun_anew_with_all_that_was_said(
    program: Program,
) -> None:
    answer = await program.ask("recall", resume="session-gone")
    assert answer.text == "1 True"
    assert answer.resume == "session-0"


async def test_one_that_stops_for_its_turns_goes_on_and_its_parts_add_up(
    program: Program,
) -> None:
    answer = await program.ask("turns 2 done")
    assert answer.text == "part 2\n\npart 1\n\ndone"
    assert answer.usage.output_tokens == 9


async def test_it_goes_on_only_so_often(program: Program) -> None:
    answer = await program.ask("turns 99 done")
    assert answer.text.startswith("part 99\n\npart 98")
    assert answer.text.endswith("part 94")


@pytest.mark.parametrize(
    ("words", "kind", "error"),
    [
        ("fail Claude AI usage limit reached", "quota", ModelRefusedError),
        ("fail API Error: 429 rate_limit_error", "rate", ModelBusyError),
        ("fail API Error: 529 Overloaded", "overload", ModelBusyError),
        ("fail Invalid API key. Please run /login", "auth", ModelRefusedError),
        ("fail Prompt is too long", "context", ModelRefusedError),
        ("crash connection refused", "network", ModelBusyError),
        ("crash something odd", "protocol", ModelBusyError),
        ("garbage", "protocol", ModelBusyError),
    ],
)
async def test_what_goes_wrong_has_a_kind(
    program: Program, words: str, kind: ModelFault, error: type[ModelError]
) -> None:
    with pytest.raises(error) as caught:
        await program.ask(words)
    assert caught.value.kind == kind


@pytest.mark.parametrize("kind", ["link", "dangling", "file"])
async def test_pictures_go_nowhere_else_whatever_the_program_did_to_their_folder(
    kind: str, program: Program
) -> None:
    elsewhere = program.folder / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mine").touch()
    program.home.mkdir(parents=True)
    inbox = program.home / "inbox"
    if kind == "file":
        inbox.write_text("in the way")
    else:
        inbox.symlink_to(elsewhere if kind == "link" else elsewhere / "nothing")
    answer = await program.ask("files", images=(Image("image/png", PNG),))
    assert answer.text == f".png:{len(PNG)}"
    assert not inbox.is_symlink()
    assert [path.name for path in elsewhere.iterdir()] == ["mine"]


async def test_what_a_failure_took_is_told(program: Program) -> None:
    first = await program.ask("say hello")
    with pytest.raises(ModelError) as caught:
        await program.ask("fail API Error: 529 Overloaded")
    assert caught.value.tokens == (12, 3, 7, 0.0)
    with pytest.raises(ModelError) as caught:
        await program.ask("fail something odd", resume=first.resume)
    assert caught.value.tokens == (24, 6, 14, 0.0)  # of the session that failed, too
    with pytest.raises(ModelError) as caught:
        await program.ask("crash something odd")
    assert caught.value.tokens == (0, 0, 0, 0.0)


async def test_its_key_is_in_no_error(program: Program) -> None:
    with pytest.raises(ModelError) as caught:
        await program.ask(f"crash {KEY} is bad")
    assert KEY not in str(caught.value)
    assert "[ANTHROPIC_API_KEY]" in str(caught.value)


async def test_it_sees_what_it_is_given_and_nothing_else(program: Program) -> None:
    seen = set((await program.ask("env")).text.split())
    assert {"ANTHROPIC_API_KEY", "IS_SANDBOX", "HOME", "PATH"} <= seen
    assert "CLAUDECODE" not in seen


async def test_pictures_are_files_while_it_runs(program: Program) -> None:
    shown = (Image("image/png", PNG), Image("image/jpeg", b"\xff\xd8\xff"))
    answer = await program.ask("files", images=shown)
    assert answer.text == f".png:{len(PNG)} .jpg:3"
    assert not list((program.home / "inbox").iterdir())


async def test_it_may_change_only_its_folder(program: Program) -> None:
    await program.ask("say x")
    (asked,) = program.sandbox.confinements
    assert asked.writable == (program.home,)


async def test_without_a_sandbox_nothing_runs(tmp_path: Path) -> None:
    sandbox = FakeSandbox(is_missing=True)
    program = Program(tmp_path)
    program.model = CliModel(CONFIG, ProgramPlace(sandbox, tmp_path))
    with pytest.raises(ModelRefusedError, match="no sandbox"):
        await program.ask("say x")


async def test_one_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    config = msgspec.structs.replace(
        CONFIG, command=("sleep", "1000"), arguments=(), timeout=0.05
    )
    config = msgspec.structs.replace(config, model_flag="", turns_flag="")
    with pytest.raises(ModelBusyError, match=r"not done after 0\.05 s") as caught:
        await Program(tmp_path, config).ask("say x")
    assert caught.value.kind == "timeout"


async def test_what_belongs_to_a_message_is_told_to_a_session_too(
    program: Program,
) -> None:
    first = await program.ask("prompt")
    again = await program.ask("prompt", resume=first.resume, notes=("Use skill X.",))
    assert "Be brief." in first.text
    assert "Be brief." not in again.text
    assert "Use skill X." in again.text


@pytest.mark.parametrize("servers", [{}, {"files": McpServerConfig(command="x")}])
@pytest.mark.parametrize("folders", [(), (Path("skills"),)])
@pytest.mark.parametrize("models", [{}, {"own": CONFIG}])
def test_only_programs_beside_servers_or_skills_are_told_of_them(
    servers: dict[str, McpServerConfig],
    folders: tuple[Path, ...],
    models: dict[str, CliModelConfig],
) -> None:
    skills = SkillsConfig(folders=folders)
    config = AppConfig(mcp_servers=servers, skills=skills, models={**models})
    sandbox = LateSandbox(SandboxConfig(), Territory())
    place = Stock(SystemClock(), sandbox, int)._ground(config)
    is_told = place.prepare is not leave_as_it_is
    assert is_told == bool(models and (servers or folders))


async def test_servers_of_tools_are_told_for_one_call(tmp_path: Path) -> None:
    files = McpServerConfig(command="files", args=("--here",))
    config = AppConfig(
        mcp_servers={"files": files, "other": McpServerConfig(command="x")},
        agents={"anna": AgentConfig(tools=("mcp:files",))},
    )
    program = Program(tmp_path)
    ground = ProgramPlace(program.sandbox, tmp_path, preparing(config, tmp_path))
    program.model = CliModel(CONFIG, ground)
    answer = await program.ask("servers")
    assert json.loads(answer.text)["mcpServers"] == {
        "files": {"command": "files", "args": ["--here"]}
    }
    assert not list(program.home.glob("*.json"))


async def test_it_may_reserve_addresses_and_compute_as_long_as_its_time_lasts(
    program: Program,
) -> None:
    await program.ask("say hello")
    (asked,) = program.sandbox.confinements
    assert asked.limits.memory >= 64 * 1024**3, "Node and Bun reserve that much"
    assert asked.limits.cpu >= CliModelConfig().timeout


@pytest.mark.parametrize(
    ("told", "dollars"),
    [("0.0125", 0.0125), ("null", 0.0), ("-1", 0.0)],
)
async def test_what_it_says_that_it_cost_is_counted(
    program: Program, told: str, dollars: float
) -> None:
    answer = await program.ask(f"costs {told}")
    assert answer.usage.dollars == dollars
    assert Prices().cost(answer.usage) == dollars


def skilled(folder: Path) -> AppConfig:
    """Write a skill for anna, whose model is a program."""
    skill = folder / "skills" / "pdf"
    skill.mkdir(parents=True)
    head = "---\nname: pdf\ndescription: Fills in forms.\n---\nStep 1."
    (skill / "SKILL.md").write_text(head)
    return AppConfig(
        skills=SkillsConfig(folders=(folder / "skills",)),
        agents={"anna": AgentConfig(skills=("pdf",), model="claude")},
        models={"claude": CONFIG},
    )


async def test_it_reads_the_skills_of_its_agent_by_itself(tmp_path: Path) -> None:
    config, program = skilled(tmp_path), Program(tmp_path)
    ground = ProgramPlace(program.sandbox, tmp_path, preparing(config, tmp_path))
    program.model = CliModel(CONFIG, ground)
    await program.ask("say hello")
    (asked,) = program.sandbox.confinements
    assert tmp_path / "skills" / "pdf" in asked.readable
    own, agents = allotted(config, skills_of(config)), config.program_agents
    source = SkillSource(own, {}, Using(60.0), 2, agents, lambda _name: None)
    address = Address("http", "chat")
    context = ToolContext(
        agent="anna", correlation_id="c", address=address, sender_id="ada"
    )
    (catalogue,) = (await source.offer(context, "hello")).standing
    assert f"- pdf: Fills in forms. ({tmp_path}/skills/pdf)" in catalogue
    assert "use_skill" not in catalogue
