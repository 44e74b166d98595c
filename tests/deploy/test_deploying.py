"""Proves of what is deployed with what can be run without a cluster or a daemon."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from connectors.config.app import ADMIN_PORT, HttpConfig
from connectors.settings.load import settings_type
from connectors.web.eliza.platform import WebConfig
from connectors.web.page.platform import PageConfig
from tests.processes.running import PATIENCE, ROOT

if TYPE_CHECKING:
    from pathlib import Path

DEPLOY = ROOT / "config" / "deploy"
UNIT = DEPLOY / "systemd" / "callboard.service"
MOST_EXPOSED = 2.0
"""Of 10, as systemd-analyze counts."""

PORTS = {ADMIN_PORT, HttpConfig().port, PageConfig(people=()).port}
DRAIN = settings_type()().limits.drain_timeout


def program(name: str) -> str:
    """Give a program of this machine, or skip the test."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"there is no {name} here")
    return found


def said(*words: str) -> str:
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    analyze = program("systemd-analyze")
    text = UNIT.read_text(encoding="utf-8")
    unit = tmp_path / UNIT.name
    run = re.sub(r"ExecStart=\S+", "ExecStart=/bin/true", text)
    unit.write_text(run, encoding="utf-8")
    assert "callboard.service" not in said(analyze, "verify", "--man=no", str(unit))
    told = said(analyze, "security", "--offline=true", str(unit))
    level = re.search(r"exposure level for callboard.service: ([\d.]+)", told)
    assert level
    assert float(level[1]) < MOST_EXPOSED


def test_systemd_takes_the_backup_and_its_timer(tmp_path: Path) -> None:
    analyze = program("systemd-analyze")
    for name in ("callboard-backup.service", "callboard-backup.timer"):
        text = UNIT.with_name(name).read_text(encoding="utf-8")
        run = re.sub(r"ExecStart=\S+", "ExecStart=/bin/true", text)
        (tmp_path / name).write_text(run, encoding="utf-8")
    units = [str(each) for each in tmp_path.iterdir()]
    assert "callboard-backup" not in said(analyze, "verify", "--man=no", *units)


def test_the_unit_gives_time_for_what_is_under_way() -> None:
    text = UNIT.read_text(encoding="utf-8")
    stop = re.search(r"^TimeoutStopSec=(\d+)s$", text, re.MULTILINE)
    assert stop
    assert int(stop[1]) > 3 * DRAIN


def test_nginx_takes_its_example(tmp_path: Path) -> None:
    nginx, openssl = program("nginx"), program("openssl")
    made = ("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=a")
    files = ("-keyout", str(tmp_path / "key"), "-out", str(tmp_path / "certificate"))
    said(openssl, *made, *files)
    text = (DEPLOY / "proxy" / "nginx.conf").read_text(encoding="utf-8")
    text = re.sub(r"/etc/\S+/fullchain.pem", str(tmp_path / "certificate"), text)
    text = re.sub(r"/etc/\S+/privkey.pem", str(tmp_path / "key"), text)
    whole = tmp_path / "nginx.conf"
    head = f"pid {tmp_path}/pid; error_log stderr; events {{}}\n"
    whole.write_text(f"{head}http {{\naccess_log off;\n{text}}}\n", encoding="utf-8")
    assert "test is successful" in said(nginx, "-t", "-c", str(whole))


def test_the_proxies_lead_to_the_usual_ports() -> None:
    usual = {HttpConfig().port, PageConfig(people=()).port, WebConfig().port}
    for name in ("nginx.conf", "Caddyfile"):
        text = (DEPLOY / "proxy" / name).read_text(encoding="utf-8")
        assert {int(port) for port in re.findall(r"127\.0\.0\.1:(\d+)", text)} == usual


def parts_of_cluster() -> dict[str, dict[str, Any]]:
    text = (DEPLOY / "kubernetes" / "callboard.yaml").read_text(encoding="utf-8")
    return {each["kind"]: each for each in yaml.safe_load_all(text)}


def test_the_cluster_asks_the_ports_that_are_there_and_waits_long_enough() -> None:
    parts = parts_of_cluster()
    assert parts.keys() == {"StatefulSet", "Service", "PodDisruptionBudget"}
    pod = parts["StatefulSet"]["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    assert set(ports.values()) == PORTS
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert ports[container[probe]["httpGet"]["port"]] == ADMIN_PORT
    assert pod["spec"]["terminationGracePeriodSeconds"] > 3 * DRAIN
    assert container["securityContext"]["readOnlyRootFilesystem"]
    labels = pod["metadata"]["labels"]
    assert parts["StatefulSet"]["spec"]["replicas"] == 1, "one process has a database"
    for kind in ("Service", "PodDisruptionBudget"):
        selector = parts[kind]["spec"]["selector"]
        assert selector.get("matchLabels", selector) == labels
    mounts = {each["name"] for each in container["volumeMounts"]}
    claims = parts["StatefulSet"]["spec"]["volumeClaimTemplates"]
    volumes = [*pod["spec"]["volumes"], *(each["metadata"] for each in claims)]
    assert mounts == {each["name"] for each in volumes}


def test_kubernetes_knows_each_field(tmp_path: Path) -> None:
    validate = program("kubernetes-validate")
    text = (DEPLOY / "kubernetes" / "callboard.yaml").read_text(encoding="utf-8")
    for given, is_right in (
        (text, True),
        (text.replace("replicas:", "copies:"), False),
    ):
        file = tmp_path / "cluster.yaml"
        file.write_text(given, encoding="utf-8")
        words = (validate, "--strict", file)
        ran = subprocess.run(words, check=False, capture_output=True, text=True)
        assert (ran.returncode == 0) is is_right, ran.stdout + ran.stderr


def test_the_container_runs_as_nobody_and_asks_after_itself() -> None:
    text = (DEPLOY / "container" / "Dockerfile").read_text(encoding="utf-8")
    assert re.search(r"^USER 10001:10001$", text, re.MULTILINE)
    assert f"http://127.0.0.1:{ADMIN_PORT}/healthz" in text
    assert re.search(r"^HEALTHCHECK ", text, re.MULTILINE)
    for copied in re.findall(r"-c (\S+\.txt)", text):
        assert (ROOT / copied).exists()


def test_the_composition_is_read_only_and_whole() -> None:
    text = (DEPLOY / "container" / "compose.yml").read_text(encoding="utf-8")
    found = yaml.safe_load(text)
    own = found["services"]["callboard"]
    assert own["read_only"]
    assert own["cap_drop"] == ["ALL"]
    assert set(own["secrets"]) == found["secrets"].keys()
    named = {
        volume.partition(":")[0]
        for service in found["services"].values()
        for volume in service["volumes"]
        if not volume.startswith((".", "/"))
    }
    assert named == found["volumes"].keys()
