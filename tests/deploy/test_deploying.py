"""Proves of what is deployed with what can be run without a cluster or a daemon."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from connectors.config.app import ADMIN_PORT, HttpConfig
from connectors.settings.load import settings_type
from connectors.web.eliza.platform import WebConfig
from connectors.web.page.platform import PageConfig
from tests.processes.running import PATIENCE, ROOT, run

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
    text = re.sub(r"ExecStart=\S+", "ExecStart=/bin/true", text)
    unit.write_text(text, encoding="utf-8")
    assert "callboard.service" not in said(analyze, "verify", "--man=no", str(unit))
    told = said(analyze, "security", "--offline=true", str(unit))
    level = re.search(r"exposure level for callboard.service: ([\d.]+)", told)
    assert level
    assert float(level[1]) < MOST_EXPOSED


def test_systemd_takes_the_backup_and_its_timer(tmp_path: Path) -> None:
    analyze = program("systemd-analyze")
    for name in ("callboard-backup.service", "callboard-backup.timer"):
        text = UNIT.with_name(name).read_text(encoding="utf-8")
        text = re.sub(r"ExecStart=\S+", "ExecStart=/bin/true", text)
        (tmp_path / name).write_text(text, encoding="utf-8")
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


def composition(path: str) -> dict[str, Any]:
    """Read a composition, whose secrets and volumes must be those that are used."""
    found: dict[str, Any] = yaml.safe_load((DEPLOY / path).read_text(encoding="utf-8"))
    services: list[dict[str, Any]] = [*found["services"].values()]
    used = {name for each in services for name in each.get("secrets", ())}
    assert used == found["secrets"].keys()
    named = {
        volume.partition(":")[0]
        for each in services
        for volume in each["volumes"]
        if not volume.startswith((".", "/"))
    }
    assert named == found["volumes"].keys()
    return found


def test_the_composition_is_read_only_and_whole() -> None:
    found = composition("container/compose.yml")
    own = found["services"]["callboard"]
    assert own["read_only"]
    assert own["cap_drop"] == ["ALL"]
    # `callboard init` writes agents' characters beside the settings.
    assert "./company:/etc/callboard:ro" in own["volumes"]
    (network,) = found["networks"]["default"]["ipam"]["config"]
    text = (DEPLOY / "container" / "compose.yml").read_text(encoding="utf-8")
    assert f'trusted_proxies = ["{network["subnet"]}"]' in text


def test_the_composed_nodes_are_one_company_behind_one_proxy() -> None:
    found = composition("nodes/compose.yml")
    services = found["services"]
    nodes = {name: services[name] for name in services if name.startswith("node-")}
    assert len(nodes) == 3
    database = services["database"]
    for own in (database, *nodes.values()):
        assert own["read_only"]
        assert own["cap_drop"] == ["ALL"]
    assert database["user"] == "postgres"
    assert "pg_isready" in database["healthcheck"]["test"]
    names = {
        each["environment"].pop("CALLBOARD_NODES__NAME") for each in nodes.values()
    }
    assert len(names) == len(nodes)
    for name, own in nodes.items():
        assert own["environment"].pop("CALLBOARD_NODES__ADDRESS") == name
        assert int(own["stop_grace_period"].removesuffix("s")) > 3 * DRAIN
        assert own["depends_on"] == {"database": {"condition": "service_healthy"}}
        assert own == nodes["node-a"], "nodes share all but name and address"
    (network,) = found["networks"]["default"]["ipam"]["config"]
    trusted = services["node-a"]["environment"][
        "CALLBOARD_CONNECTORS__HTTP__TRUSTED_PROXIES"
    ]
    assert trusted == f'["{network["subnet"]}"]'
    caddy = (DEPLOY / "nodes" / "Caddyfile").read_text(encoding="utf-8")
    asked = re.findall(rf"(node-\w+):{HttpConfig().port}", caddy)
    assert asked == [*nodes] == services["proxy"]["depends_on"]
    assert f"health_port {ADMIN_PORT}\n" in caddy
    assert "health_uri /readyz\n" in caddy


def test_the_settings_of_composed_nodes_are_right(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    for name in ("dsn", "http", "admin"):
        secret = tmp_path / "run" / name
        secret.write_text(f"postgresql://{name}/0123456789", encoding="utf-8")
        secret.chmod(0o400)
    node = composition("nodes/compose.yml")["services"]["node-b"]
    variables = {
        name: value.replace("/run/secrets", str(tmp_path / "run"))
        for name, value in node["environment"].items()
    }
    assert run("init", "--yes", folder=tmp_path).code == 0
    done = run("config", "check", folder=tmp_path, admin_port=ADMIN_PORT, **variables)
    assert done.code == 0, done.said


def test_caddy_takes_the_file_for_nodes() -> None:
    path = str(DEPLOY / "nodes" / "Caddyfile")
    ways = ("--adapter", "caddyfile", "--config", path)
    assert "Valid configuration" in said(program("caddy"), "validate", *ways)
