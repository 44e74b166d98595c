"""Proves how confined programs run and end, and that nothing of them is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import trio

from connectors.sandbox.plan import (
    LONG_RUNNING,
    MIB,
    Confinement,
    Finished,
    SandboxError,
    SandboxLimits,
)
from connectors.sandbox.process import LaunchingSandbox
from tests.connectors.sandbox.stage import (
    PYTHON,
    SMALL,
    Stage,
    confining,
    open_stage,
    unconfined,
)

ROOT = Path(__file__).parents[3]


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with open_stage(tmp_path) as made:
        yield made


@pytest.fixture(params=["bubblewrap", "landlock", "none"])
def sandbox(request: pytest.FixtureRequest, stage: Stage) -> LaunchingSandbox:
    if request.param == "none":
        return unconfined(stage)
    return confining(request.param, stage)


@pytest.fixture(params=["bubblewrap", "landlock"])
def strong(request: pytest.FixtureRequest, stage: Stage) -> LaunchingSandbox:
    return confining(request.param, stage)


async def shell(
    sandbox: LaunchingSandbox,
    stage: Stage,
    command: str | Sequence[str],
    *,
    timeout: float = 30,  # noqa: ASYNC109  as the sandbox's own
    max_output: int = 10_000,
    stdin: bytes = b"",
) -> Finished:
    line = ["sh", "-c", command] if isinstance(command, str) else command
    return await sandbox.run(
        line,
        confinement=stage.confinement("port"),
        cwd=stage.work,
        timeout=timeout,
        max_output=max_output,
        env={"GIVEN": "yes", "CLAUDECODE": "1"},
        stdin=stdin,
    )


def alive(mark: str) -> list[int]:
    """Find processes by a word of their command line."""
    found: list[int] = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                line = (place / "cmdline").read_bytes()
            except OSError:
                continue
            if mark.encode() in line and int(place.name) != os.getpid():
                found.append(int(place.name))
    return found


@pytest.fixture
def scratch(tmp_path: Path) -> Iterator[Path]:
    """Have temporary folders made where nobody else makes some."""
    place = tmp_path / "scratch"
    place.mkdir()
    before, tempfile.tempdir = tempfile.tempdir, str(place)
    yield place
    tempfile.tempdir = before


def is_empty(folder: Path) -> bool:
    return not [*folder.iterdir()]


async def wait_alive(mark: str, count: int) -> None:
    with trio.fail_after(20):
        while len(alive(mark)) != count:  # noqa: ASYNC110  processes tell nobody
            await trio.sleep(0.05)


async def test_a_program_reads_writes_and_ends(
    sandbox: LaunchingSandbox, stage: Stage
) -> None:
    finished = await shell(
        sandbox, stage, "cat; echo bad >&2; pwd > made; exit 3", stdin=b"words" * 50_000
    )
    assert finished.returncode == 3
    assert finished.stderr == b"bad\n"
    assert finished.stdout.startswith(b"words")
    assert finished.was_cut
    assert not finished.timed_out
    assert (stage.work / "made").read_text() == f"{stage.work}\n"


async def test_it_is_given_few_variables(
    sandbox: LaunchingSandbox, stage: Stage
) -> None:
    finished = await shell(sandbox, stage, ["env"])
    given = dict(line.split("=", 1) for line in finished.stdout.decode().splitlines())
    assert given["HOME"] == str(stage.work)
    assert given["GIVEN"] == "yes"
    known = {"GIVEN", "HOME", "LANG", "PATH", "RES_OPTIONS", "TERM", "TMPDIR", "TZ"}
    assert given.keys() <= known | {"LANGUAGE", "LC_ALL", "LC_CTYPE"}


async def test_its_temporary_folder_is_its_own_and_goes_with_it(
    sandbox: LaunchingSandbox, stage: Stage, scratch: Path
) -> None:
    command = 'mkdir -p "$TMPDIR/a/b"; cp /bin/sh "$TMPDIR/a/b"; chmod 0 "$TMPDIR/a"'
    finished = await shell(sandbox, stage, f"{command} && echo done")
    assert finished.stdout == b"done\n"
    assert is_empty(scratch)


async def test_a_temporary_folder_too_deep_for_a_path_goes_too(
    sandbox: LaunchingSandbox, stage: Stage, scratch: Path
) -> None:
    code = (
        "import os\nos.chdir(os.environ['TMPDIR'])\nfor _ in range(1500):\n"
        "    os.mkdir('deep'); os.chdir('deep')\nopen('x', 'w'); os.chmod('..', 0)"
    )
    await shell(sandbox, stage, [PYTHON, "-I", "-S", "-c", code])
    assert is_empty(scratch)


async def test_of_much_output_beginning_and_end_are_kept(
    sandbox: LaunchingSandbox, stage: Stage
) -> None:
    finished = await shell(sandbox, stage, "seq 1 100000", max_output=100)
    assert finished.was_cut
    assert finished.stdout.startswith(b"1\n2\n3\n")
    assert finished.stdout.endswith(b"99999\n100000\n")
    assert b"[... 588795 bytes left out ...]" in finished.stdout


async def test_output_without_end_is_ended(
    sandbox: LaunchingSandbox, stage: Stage
) -> None:
    finished = await shell(sandbox, stage, "yes", timeout=60)
    assert finished.flooded
    assert finished.returncode == -9


@pytest.mark.parametrize(
    "command",
    [
        "trap '' TERM INT HUP; while :; do sleep 1; done",
        "setsid setsid sh -c 'exec sleep 1234.5' & sleep 1000",
        "kill -STOP $$",
    ],
)
async def test_what_takes_too_long_is_ended_however_it_resists(
    sandbox: LaunchingSandbox, stage: Stage, command: str
) -> None:
    with trio.fail_after(20):
        finished = await shell(sandbox, stage, command, timeout=1)
    assert finished.timed_out
    assert finished.returncode == -9
    assert not alive(str(stage.work))


async def test_what_it_leaves_running_is_ended(
    sandbox: LaunchingSandbox, stage: Stage
) -> None:
    mark = f"left-{os.getpid()}"
    daemon = (
        f"import os,sys,time\n"
        f"if os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)\n"
        f"sys.stdout.close(); sys.stderr.close(); open('{mark}','w'); time.sleep(1000)"
    )
    command = f'{PYTHON} -I -S -c "{daemon}"; while ! test -e {mark}; do :; done'
    with trio.fail_after(20):
        finished = await shell(sandbox, stage, command)
    assert finished.returncode == 0
    assert not alive(mark)


async def test_a_fork_bomb_is_ended(strong: LaunchingSandbox, stage: Stage) -> None:
    bomb = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"
    with trio.fail_after(60):
        finished = await shell(strong, stage, [PYTHON, "-I", "-S", "-c", bomb])
    assert finished.overran or os.getuid()
    assert finished.returncode == -9
    assert not alive("except OSError: pass")


async def test_memory_is_bounded_over_many_processes(
    strong: LaunchingSandbox, stage: Stage
) -> None:
    greed = (
        "import os,time\nfor _ in range(12):\n    if not os.fork(): break\n"
        "held = b'x' * (128 << 20); time.sleep(100)"
    )
    with trio.fail_after(60):
        finished = await shell(strong, stage, [PYTHON, "-I", "-S", "-c", greed])
    assert finished.overran


@pytest.mark.parametrize(
    ("use", "overruns"), [("1", False), ("b'x' * (400 << 20)", True)]
)
async def test_addresses_may_be_reserved_and_memory_in_use_is_bounded(
    use: str, *, overruns: bool, strong: LaunchingSandbox, stage: Stage
) -> None:
    """As Node reserves gigabytes that it never uses."""
    program = (
        "import mmap,time\nfar = mmap.mmap(-1, 8 << 30)\n"
        f"used = {use}\nif used != 1: time.sleep(100)"
    )
    limits = SandboxLimits(memory=256 * MIB, addresses=LONG_RUNNING.memory)
    with trio.fail_after(60):
        finished = await strong.run(
            [PYTHON, "-I", "-S", "-c", program],
            confinement=Confinement(writable=(stage.work,), limits=limits),
            cwd=stage.work,
            timeout=50,
            max_output=1_000,
        )
    assert finished.overran is overruns
    assert finished.returncode == -9 * overruns, finished.stderr


async def test_memory_is_bounded_while_what_was_left_behind_ends_all_the_time(
    strong: LaunchingSandbox, stage: Stage
) -> None:
    """Each such end wakes who watches: they look in between all the same."""
    program = (
        "import os,time\nif not os.fork():\n    held = b'x' * (400 << 20)\n"
        "    time.sleep(100)\n"
        "while True:\n    if not os.fork():\n        os.fork(); os._exit(0)\n"
        "    os.wait(); time.sleep(0.02)"
    )
    limits = SandboxLimits(memory=256 * MIB, addresses=LONG_RUNNING.memory)
    with trio.fail_after(60):
        finished = await strong.run(
            [PYTHON, "-I", "-S", "-c", program],
            confinement=Confinement(writable=(stage.work,), limits=limits),
            cwd=stage.work,
            timeout=8,
            max_output=1_000,
        )
    assert finished.overran


async def test_processor_time_is_bounded(
    sandbox: LaunchingSandbox, stage: Stage
) -> None:
    finished = await sandbox.run(
        ["sh", "-c", "while :; do :; done"],
        confinement=Confinement(writable=(stage.work,), limits=SandboxLimits(cpu=1)),
        cwd=stage.work,
        timeout=60,
        max_output=100,
    )
    assert finished.returncode in {-signal.SIGXCPU, -signal.SIGKILL}
    assert not finished.timed_out


async def test_a_large_file_is_cut_off(sandbox: LaunchingSandbox, stage: Stage) -> None:
    await shell(sandbox, stage, "head -c 20000000 /dev/zero > large")
    assert (stage.work / "large").stat().st_size == SMALL.file_size


async def test_modes_and_times_of_its_own_files_can_be_changed(
    strong: LaunchingSandbox, stage: Stage
) -> None:
    command = (
        "echo 'echo ran' > s; chmod 750 s; ./s; touch -d @1000000000 s; mkdir d;"
        " touch -h -d @1000000000 d; ln -s s l; touch -h -d @1000000000 l;"
        " cp -p s t; chmod u+w,a+r -R . && echo fine"
    )
    finished = await shell(strong, stage, command)
    assert finished.stdout == b"ran\nfine\n", finished
    script = stage.work / "s"
    assert script.stat().st_mode & 0o777 == 0o754
    assert script.stat().st_mtime == 1_000_000_000
    assert (stage.work / "l").lstat().st_mtime == 1_000_000_000
    assert (stage.work / "t").stat().st_mtime == 1_000_000_000


async def test_the_port_that_is_allowed_is_reached(
    strong: LaunchingSandbox, stage: Stage
) -> None:
    code = (
        "import socket; s = socket.create_connection(('127.0.0.1', "
        f"{stage.port})); print(s.recv(5))"
    )
    finished = await shell(strong, stage, [PYTHON, "-I", "-S", "-c", code])
    assert finished.stdout == b"b'hello'\n", finished


async def test_a_program_that_is_missing_is_named(
    sandbox: LaunchingSandbox, stage: Stage
) -> None:
    with pytest.raises(SandboxError, match="there is no program 'nothing-such'"):
        await shell(sandbox, stage, ["nothing-such"])


async def test_a_program_that_cannot_run_is_an_error(
    sandbox: LaunchingSandbox, stage: Stage
) -> None:
    broken = stage.work / "broken"
    broken.write_bytes(b"\x7fELF nonsense")
    broken.chmod(0o700)
    with pytest.raises(
        SandboxError, match=r"not started: OSError: .*Exec format error"
    ):
        await shell(sandbox, stage, [str(broken)])


async def test_a_cancelled_wait_leaves_nothing(
    sandbox: LaunchingSandbox, stage: Stage
) -> None:
    mark = f"12{os.getpid()}"
    with trio.move_on_after(1.5):
        await shell(sandbox, stage, f"sleep {mark} & setsid sleep {mark} & wait")
    assert not alive(mark)


async def test_a_long_talk_goes_through_pipes(
    sandbox: LaunchingSandbox, stage: Stage
) -> None:
    async with sandbox.open_process(
        ["cat"], confinement=stage.confinement(), cwd=stage.work
    ) as confined:
        for number in range(5):
            words = f"{number}\n".encode()
            await confined.stdin.send_all(words)
            assert await confined.stdout.receive_some() == words
        await confined.stdin.aclose()
        assert await confined.wait() == 0
        assert await confined.wait() == 0


async def test_many_at_once_do_not_mix(sandbox: LaunchingSandbox, stage: Stage) -> None:
    said: dict[int, bytes] = {}

    async def run(number: int) -> None:
        finished = await shell(sandbox, stage, f"echo {number}")
        said[number] = finished.stdout

    async with trio.open_nursery() as nursery:
        for number in range(12):
            nursery.start_soon(run, number)
    assert said == {number: f"{number}\n".encode() for number in range(12)}


async def test_one_person_leaves_a_place_to_others(stage: Stage) -> None:
    sandbox = unconfined(stage, most=4)
    mark = "7301.5"

    async def run(owner: str, command: str) -> Finished:
        return await sandbox.run(
            ["sh", "-c", command],
            confinement=stage.confinement(),
            cwd=stage.work,
            timeout=60,
            max_output=100,
            owner=owner,
        )

    async with trio.open_nursery() as nursery:
        for _ in range(6):
            nursery.start_soon(run, "web/sam", f"exec sleep {mark}")
        await wait_alive(mark, 3)
        assert (await run("web/kim", "echo on")).stdout == b"on\n"
        assert len(alive(mark)) == 3
        nursery.cancel_scope.cancel()


VICTIM = """
import sys, trio
from pathlib import Path
from connectors.config.tools import SandboxConfig
from connectors.sandbox.runner import open_sandbox
from connectors.sandbox.plan import Confinement
from connectors.sandbox.plan import Territory
async def main():
    sandbox = await open_sandbox(SandboxConfig(mode=sys.argv[1]), Territory())
    work = Path(sys.argv[2])
    async with sandbox.open_process(
        ["sh", "-c", f"setsid sleep {sys.argv[3]} & echo on; sleep {sys.argv[3]}"],
        confinement=Confinement(writable=(work,)), cwd=work,
    ) as confined:
        print(await confined.stdout.receive_some(), flush=True)
        await trio.sleep_forever()
trio.run(main)
"""


async def test_nothing_outlives_callboard_itself(
    strong: LaunchingSandbox, stage: Stage
) -> None:
    mark = f"34{os.getpid()}"
    kind = strong.standing.kind
    line = [sys.executable, "-c", VICTIM, kind, str(stage.work), mark]
    with subprocess.Popen(  # noqa: ASYNC220  it only starts one
        line, stdout=subprocess.DEVNULL, cwd=ROOT
    ) as victim:
        try:
            await wait_alive(f"sleep\0{mark}", 2)
        finally:
            victim.kill()
    await wait_alive(f"sleep\0{mark}", 0)
