"""Installs the program as people do, from a wheel, and uses it outside the checkout.

`python -m tests.deploy.installed` makes an sdist, from that a wheel, puts it into a
fresh virtual environment in a temporary folder, and there runs `init`, `chat`, `serve`
with the page, and `python -m callboard`. It ends with 1 if something is missing.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
import threading
import tomllib
import venv
from pathlib import Path

import httpx

ROOT = Path(__file__).parents[2]
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


def serves_the_page(program: str, home: Path) -> None:
    """Serve the page from the wheel, and look at it and at the admin address."""
    settings = str(home / "shipped" / "page.toml")
    free = ("--set", "connectors.page.port=0", "--set", "admin.port=0")
    with subprocess.Popen(
        [program, "serve", "--config", settings, *free],
        cwd=home.parent,
        env=os.environ | {"STATE_DIRECTORY": str(home.parent / "state")},
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
            is_healthy(str(Path(program).with_name("python")), admin, home.parent)
            shown = httpx.get(page, follow_redirects=True).text
            expect("<html", shown)
            (style, *_) = [x for x in shown.split('"') if x.endswith(".css")]
            expect("{", httpx.get(f"{page}{style}").text)
        finally:
            late.cancel()
            process.terminate()


def is_healthy(python: str, admin: str, folder: Path) -> None:
    """Look after a server as the container image does; its extras are those here."""
    image = ROOT / "config" / "deploy" / "container" / "Dockerfile"
    text = image.read_text(encoding="utf-8")
    (extras,) = re.findall(r'"\.\[([\w,]+)\]"', text)
    expect(EXTRAS, extras)
    (check,) = re.findall(r"^  CMD (\[.*\])$", text, re.MULTILINE)
    _, *options, code = json.loads(check)
    here = code.replace("http://127.0.0.1:8082", admin)
    expect(admin, here)
    run(python, *options, here, folder=folder)


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
        serves_the_page(program, Path(home.strip()))
    print("installed from the wheel, and used")  # noqa: T201  likewise


if __name__ == "__main__":
    main()
