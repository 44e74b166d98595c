"""Installs the program as people do, from a wheel, and uses it outside the checkout.

`python -m tests.deploy.installed` makes an sdist, from that a wheel, puts it into a
fresh virtual environment in a temporary folder, and there runs `init`, `chat`, `serve`
with the page, and `python -m callboard`. Then it does what the Dockerfile says, step by
step, in a folder that stands for the image's root, since no daemon is needed for that.
It ends with 1 if something is missing.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import tomllib
import venv
from pathlib import Path

import httpx

ROOT = Path(__file__).parents[2]
CONTAINER = ROOT / "config" / "deploy" / "container"
PATIENCE = 300.0
EXTRAS = "discord,documents,mcp,otel,postgresql,slack,web,websocket"
SHIPPED = """
import connectors, importlib.metadata as m, pathlib
home = pathlib.Path(connectors.__file__).parent
for path in ("shipped/default.toml", "shipped/locale/de", "shipped/prices.toml",
             "shipped/deploy/prometheus/alerts.yml", "web/page/static",
             "web/page/templates", "py.typed"):
    assert (home / path).exists(), path
about = m.metadata("callboard")
assert "Typing :: Typed" in about.get_all("Classifier")
assert set("EXTRAS".split(",")) <= set(about.get_all("Provides-Extra"))
print(home)
"""


def run(*words: str, folder: Path, typed: str = "") -> str:
    """Run a program to its end; gives what it said.

    Raises:
        SystemExit: it failed.
    """
    print("$", *words, flush=True)  # noqa: T201  its output is standard output
    done = subprocess.run(
        words,
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8"},
        input=typed,
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{words} ended with {done.returncode}:\n{done.stderr}")
    return done.stdout


def expect(text: str, said: str) -> None:
    """End with an error if a text is not in what was said."""
    if text not in said:
        raise SystemExit(f"{text!r} was not said, but:\n{said}")


def wheel_from_sdist(work: Path) -> Path:
    """Make the sdist, and the wheel from it alone."""
    venv.create(work / "builder", with_pip=True)
    python = str(work / "builder" / "bin" / "python")
    run(python, "-m", "pip", "install", "-q", "hatchling>=1.27", folder=work)
    sdists = str(work / "sdist")
    run(python, "-m", "hatchling", "build", "-t", "sdist", "-d", sdists, folder=ROOT)
    (sdist,) = (work / "sdist").glob("callboard-*.tar.gz")
    made = ("-q", "--no-deps", "-w", str(work / "wheel"), str(sdist))
    run(python, "-m", "pip", "wheel", *made, folder=work)
    (wheel,) = (work / "wheel").glob("callboard-*.whl")
    return wheel


def serves_the_page(
    words: list[str], home: Path, state: Path, **environment: str
) -> None:
    """Serve the page from the wheel, and look at it and at the admin address.

    Args:
        words: the program and `serve`, with what it needs to find its settings.
        home: the folder with `bin/` of the environment where the package is.
        state: the working directory, and `$STATE_DIRECTORY`.
        environment: further variables.
    """
    free = ("--set", "connectors.page.port=0", "--set", "admin.port=0")
    variables = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    with subprocess.Popen(
        [*words, *free],
        cwd=state,
        env=variables | {"STATE_DIRECTORY": str(state)} | environment,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        late = threading.Timer(PATIENCE, process.kill)
        late.start()
        try:
            found: dict[str, str] = {}
            for line in process.stdout or ():
                name, _, rest = line.partition(": ")
                found.setdefault(name, rest.split()[-1])
                if name == "admin":
                    break
            admin, page = found["admin"], found["page"]
            expect("callboard_build_info", httpx.get(f"{admin}/metrics").text)
            is_healthy(str(home / "bin" / "python"), admin, state)
            shown = httpx.get(page, follow_redirects=True).text
            expect("<html", shown)
            (style, *_) = [x for x in shown.split('"') if x.endswith(".css")]
            expect("{", httpx.get(f"{page}{style}").text)
        finally:
            late.cancel()
            process.terminate()
    if process.returncode:
        raise SystemExit(f"{words} ended with {process.returncode} after SIGTERM")


def is_healthy(python: str, admin: str, folder: Path) -> None:
    """Look after a server as the container image does; its extras are those here."""
    text = (CONTAINER / "Dockerfile").read_text(encoding="utf-8")
    (extras,) = re.findall(r'"\.\[([\w,]+)\]"', text)
    expect(EXTRAS, extras)
    (check,) = re.findall(r"^  CMD (\[.*\])$", text, re.MULTILINE)
    _, *options, code = json.loads(check)
    here = code.replace("http://127.0.0.1:8082", admin)
    expect(admin, here)
    run(python, *options, here, folder=folder)


def context(into: Path) -> None:
    """Copy what the Dockerfile's builder is sent: all that is not ignored."""
    ignored = (CONTAINER / "Dockerfile.dockerignore").read_text(encoding="utf-8")
    into.mkdir()
    for line in ignored.splitlines():
        if line.startswith("!"):
            path = ROOT / line[1:]
            left_out = shutil.ignore_patterns("__pycache__")
            if path.is_dir():
                shutil.copytree(path, into / path.name, ignore=left_out)
            else:
                shutil.copy2(path, into)


def replay_image(image: Path) -> None:
    """Do each step of the Dockerfile below `image`, and run its program as it says.

    As root, the program runs as the image's user, who may write to its state only.
    What would change this machine, or is for a daemon, is left out: users, volumes,
    ports.
    """
    text = (CONTAINER / "Dockerfile").read_text(encoding="utf-8")
    build, final = text.replace("\\\n", " ").split("\nFROM ")[1:]
    image.mkdir()
    context(image / "source")
    for step in re.findall(r"^RUN (.*)$", build, re.MULTILINE):
        here = step.replace("/opt/", f"{image}/opt/").replace(
            "python", sys.executable, 1
        )
        run("sh", "-euc", here, folder=image / "source")
    (copied,) = re.findall(r"^COPY --from=build (\S+) (\S+)$", final, re.MULTILINE)
    expect("/opt/callboard", copied[0])
    expect(copied[0], copied[1])
    said = dict(re.findall(r'(\w+)="?([^"\s]+)"?', " ".join(steps(final, "ENV"))))
    (user,) = steps(final, "USER")
    home = image / "opt" / "callboard"
    state = image / said["STATE_DIRECTORY"].lstrip("/")
    config = image / said["CALLBOARD_CONFIG"].lstrip("/")
    state.mkdir()
    shutil.copytree(ROOT / "config", config.parent)
    (config.parent / "page.toml").rename(config)
    number, group = user.split(":")
    drops: list[str] = []
    if os.geteuid() == 0:
        os.chown(state, int(number), int(group))
        drops = ["setpriv", "--reuid", number, "--regid", group, "--clear-groups"]
    entry, command = steps(final, "ENTRYPOINT")[0], steps(final, "CMD")[0]
    starts: list[str] = [*json.loads(entry), *json.loads(command)]
    words = [*drops, str(home / "bin" / starts[0]), *starts[1:]]
    print("$", shlex.join(words), flush=True)  # noqa: T201  likewise
    for name in said.keys() - {"PATH", "PYTHONUNBUFFERED"}:
        said[name] = f"{image}{said[name]}"
    path = said["PATH"].replace("$PATH", os.environ["PATH"])
    said["PATH"] = path.replace("/opt/callboard", str(home))
    serves_the_page(words, home, state, **said)


def steps(stage: str, name: str) -> list[str]:
    """Give what the instructions of a name in a stage of the Dockerfile say."""
    return re.findall(rf"^{name} (.*)$", stage, re.MULTILINE)


def main() -> None:
    """Do all of it."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        wheel = wheel_from_sdist(work)
        venv.create(work / "clean", with_pip=True)
        programs = work / "clean" / "bin"
        python, program = str(programs / "python"), str(programs / "callboard")
        pins = ("-q", "-c", str(ROOT / "constraints.txt"))
        wanted = f"{wheel}[{EXTRAS}]"
        run(python, "-m", "pip", "install", *pins, wanted, folder=work)
        run(python, "-m", "pip", "check", folder=work)
        about = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
        expect("Typing :: Typed", str(about["project"]["classifiers"]))
        empty = work / "empty"
        empty.mkdir()
        home = run(python, "-c", SHIPPED.replace("EXTRAS", EXTRAS), folder=empty)
        expect("callboard ", run(program, "--version", folder=empty))
        expect("callboard ", run(python, "-m", "callboard", "--version", folder=empty))
        run(program, "init", "--yes", folder=empty)
        expect("ok (", run(program, "config", "check", folder=empty))
        run(program, "chat", folder=empty, typed="hello\n")
        expect("default:", run(program, "config", "explain", "log.level", folder=empty))
        settings = str(Path(home.strip()) / "shipped" / "page.toml")
        (work / "state").mkdir()
        words = [program, "serve", "--config", settings]
        serves_the_page(words, work / "clean", work / "state")
        work.chmod(0o755)  # for the image's user
        replay_image(work / "image")
    print("installed from the wheel, and used")  # noqa: T201  likewise


if __name__ == "__main__":
    main()
