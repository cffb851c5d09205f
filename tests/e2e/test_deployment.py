"""The files of `deploy/` say what the program understands, and their parts work as processes."""

import configparser
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
import yaml

from evenedit.api.study import Study
from evenedit.cli.serve import serve
from evenedit.web.auth import Accounts
from evenedit.web.roles import Role
from tests.support.commands import Command
from tests.support.studies import write_study

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
PASSWORD = "a quiet morning"


def understood(arguments: list[str]) -> dict[str, object]:
    """What `evenedit serve` makes of a command line."""
    assert arguments[0] == "serve"
    return serve.make_context("serve", arguments[1:]).params


def test_the_image_copies_what_is_there_and_does_not_run_as_root() -> None:
    text = (DEPLOY / "Containerfile").read_text().replace("\\\n", " ")
    lines = [line.split(maxsplit=1) for line in text.splitlines() if line and not line.startswith("#")]
    stages: set[str] = set()
    known = "FROM WORKDIR COPY RUN ENV USER VOLUME EXPOSE HEALTHCHECK ENTRYPOINT CMD"
    assert all(word in known for word, _ in lines)
    for word, rest in lines:
        if word == "COPY" and "--from" not in rest:
            assert all((ROOT / source).exists() for source in rest.split()[:-1]), rest
        if word == "FROM":
            assert rest.split()[0] in stages or (":" in rest and "latest" not in rest)
            stages.add(rest.split()[-1])
    assert [rest for word, rest in lines if word == "USER"][-1] == "evenedit"
    command = json.loads([rest for word, rest in lines if word == "CMD"][-1])
    assert understood(command)["production"] is True
    assert "/ready" in next(rest for word, rest in lines if word == "HEALTHCHECK")


def test_the_job_of_kubernetes_runs_a_study_with_the_command_of_the_image(tmp_path: Path, evenedit: Command) -> None:
    """There is no cluster here, and no schema of jobs: the structure is checked, and the command is run."""
    text = (DEPLOY / "Containerfile").read_text()
    assert re.search(r"AS build-run\nRUN .*\[postgres,api,local\]\" s3fs", text) and "FROM base AS run" in text
    job = yaml.safe_load((DEPLOY / "job.yaml").read_text())
    assert (job["apiVersion"], job["kind"]) == ("batch/v1", "Job") and job["spec"]["completionMode"] == "Indexed"
    pod = job["spec"]["template"]["spec"]
    (container,), (copy,) = pod["containers"], pod["initContainers"]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    assert all(mount["name"] in volumes for part in (container, copy) for mount in part["volumeMounts"])
    writable = [m["mountPath"] for m in container["volumeMounts"] if "emptyDir" in volumes[m["name"]]]
    assert writable == ["/study"], "a run writes its history there"
    assert container["envFrom"][0]["secretRef"] and pod["restartPolicy"] == "Never"
    given, folder = write_study(tmp_path / "given"), tmp_path / "study"
    folder.mkdir()
    places = {"/given": str(given), "/study": str(folder)}
    subprocess.run([re.sub("^/given|^/study", lambda at: places[at[0]], word) for word in copy["command"]], check=True)
    (entry,) = json.loads(re.findall(r"^ENTRYPOINT (.*)$", text, re.MULTILINE)[-1])
    assert entry == "evenedit"
    done = evenedit(*(places.get(word, word) for word in container["args"]))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["slurm-array.sh", "slurm-ray.sh"])
def test_the_scripts_for_slurm_are_scripts(name: str) -> None:
    script = DEPLOY / name
    lines = script.read_text().splitlines()
    assert lines[0] == "#!/bin/bash"
    options = [at for at, line in enumerate(lines) if line.startswith("#SBATCH --")]
    commands = [at for at, line in enumerate(lines) if not line.startswith("#")]
    assert options and max(options) < min(commands), "Slurm reads no options after the first command"
    subprocess.run(["bash", "-n", str(script)], check=True)
    if shutil.which("shellcheck"):
        subprocess.run(["shellcheck", str(script)], check=True)


def test_the_compose_file_is_of_one_piece() -> None:
    text = (DEPLOY / "compose.yaml").read_text()
    compose = yaml.safe_load(text)
    services = compose["services"]
    assert set(services) == {"app", "database", "caddy"}
    addresses = {name: service["networks"]["inside"]["ipv4_address"] for name, service in services.items()}
    command = [
        str(word).replace("${SURVEY_HOST:?the name that visitors open}", "x.example")
        for word in services["app"]["command"]
    ]
    options = understood(command)
    assert options["production"] and options["proxy"] == addresses["caddy"] and options["host"] == "0.0.0.0"
    assert "ports" not in services["app"] and "ports" not in services["database"], "only Caddy can be reached"
    build = services["app"]["build"]
    assert (DEPLOY / build["context"] / build["dockerfile"]).is_file()
    for service in services.values():
        for volume in service["volumes"]:
            source = volume.rpartition(":")[0] if volume.count(":") == 1 else volume.split(":")[0]
            assert source in compose["volumes"] or source.startswith("${") or (DEPLOY / source).exists(), volume
    named = set(re.findall(r"\$\{(\w+)", text))
    assert named == set(re.findall(r"^(\w+)=", (DEPLOY / "env.example").read_text(), re.MULTILINE))


def test_caddy_passes_requests_to_the_port_of_the_app() -> None:
    text = (DEPLOY / "Caddyfile").read_text()
    assert text.count("{") == text.count("}") and "reverse_proxy {$APP:127.0.0.1:8000}" in text
    assert understood(["serve", "x"])["port"] == 8000


@pytest.mark.skipif(shutil.which("caddy") is None, reason="no caddy on this machine")
def test_caddy_takes_its_file() -> None:
    command = ["caddy", "adapt", "--config", str(DEPLOY / "Caddyfile")]
    subprocess.run(command, check=True, env=os.environ | {"SURVEY_HOST": "x.example"})


def test_the_unit_starts_what_the_program_understands() -> None:
    unit = configparser.ConfigParser(strict=True, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(DEPLOY / "evenedit.service")
    assert set(unit) - {"DEFAULT"} == {"Unit", "Service", "Install"}
    words = shlex.split(unit["Service"]["ExecStart"])
    options = understood(words[1:])
    assert options["production"] and options["address"] == "https://survey.example"
    assert str(options["study"]) == unit["Service"]["ReadWritePaths"] and unit["Service"]["UMask"] == "0077"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd on this machine")
def test_systemd_takes_the_unit() -> None:
    told = subprocess.run(
        ["systemd-analyze", "verify", str(DEPLOY / "evenedit.service")], capture_output=True, text=True
    )
    assert "Unknown" not in told.stderr


def test_the_command_of_the_unit_serves_in_production_and_logs_nothing_about_anybody(tmp_path: Path) -> None:
    folder = write_study(tmp_path / "study")
    study = Study.load(folder)
    Accounts(study.store).add("ada", Role.OWNER, PASSWORD)
    study.store.close()
    log = tmp_path / "access.jsonl"
    command = ["serve", str(folder), "--production", "--proxy", "127.0.0.1", "--address", "https://survey.example"]
    command += ["--port", "0", "--access-log", str(log)]
    with (tmp_path / "stderr.txt").open("w") as errors:
        process = subprocess.Popen([sys.executable, "-m", "evenedit", *command], stderr=errors)
    try:
        while not (printed := re.search(r"http://127\.0\.0\.1:\d+", (tmp_path / "stderr.txt").read_text())):
            assert process.poll() is None, (tmp_path / "stderr.txt").read_text()
            time.sleep(0.1)
        base = printed[0]
        for _ in range(600):
            try:
                if httpx.get(base + "/ready").status_code == 200:
                    break
            except httpx.TransportError:
                time.sleep(0.1)
        assert httpx.get(base + "/admin/login").status_code == 400, "not by HTTPS, and for another name"
        as_caddy = {"Host": "survey.example", "X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.7"}
        assert httpx.get(base + "/admin/login", headers=as_caddy).status_code == 200
        assert (
            httpx.get(base + "/admin/login?id=person-secret", headers=as_caddy | {"Host": "evil.example"}).status_code
            == 400
        )
        form = {"name": "ada", "password": PASSWORD}
        signed = httpx.post(base + "/admin/login", data=form, headers=as_caddy)
        assert signed.status_code == 303 and "Secure" in signed.headers["set-cookie"]
        assert httpx.get(base + "/pictures/" + "f" * 64, headers=as_caddy).status_code == 401
    finally:
        process.terminate()
        process.wait(20)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert {tuple(sorted(line)) for line in lines} == {("bytes", "method", "ms", "route", "status", "time")}
    assert ("GET", "/admin/login", 200) in {(line["method"], line["route"], line["status"]) for line in lines}
    assert not any(secret in log.read_text() for secret in ("203.0.113.7", "person-secret", "ffff", "ada", PASSWORD))
