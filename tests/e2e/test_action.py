"""The steps of the GitHub Action, run here against a stand-in of the API."""

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.paths import ROOT

ACTION = yaml.safe_load((ROOT / "action.yml").read_text())


class Api(ThreadingHTTPServer):
    """Comments of one pull request, as the API keeps them."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.comments: list[dict[str, Any]] = [
            {"id": number, "body": f"somebody's comment {number}"} for number in range(120)
        ]
        self.calls: list[str] = []
        self.forbidden = False
        """Whether the token may only read, as for pull requests from a fork."""


class Handler(BaseHTTPRequestHandler):
    server: Api

    def answer(self, body: Any, status: int = 200) -> None:
        self.server.calls.append(self.command)
        assert self.headers["Authorization"] == "Bearer secret"
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def given(self) -> dict[str, str]:
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def do_GET(self) -> None:
        page = int(re.search(r"[?&]page=(\d+)", self.path)[1])
        assert self.path.startswith("/repos/owner/name/issues/7/comments")
        self.answer(self.server.comments[(page - 1) * 100 : page * 100])

    def do_POST(self) -> None:
        if self.server.forbidden:
            self.answer({"message": "Resource not accessible by integration"}, 403)
            return
        made = {"id": 1000 + len(self.server.comments), **self.given()}
        self.server.comments.append(made)
        self.answer(made, 201)

    def do_PATCH(self) -> None:
        ident = int(self.path.rpartition("/")[2])
        known = next(one for one in self.server.comments if one["id"] == ident)
        known |= self.given()
        self.answer(known)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def api() -> Iterator[Api]:
    with Api() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def run_steps(folder: Path, api: Api, **inputs: str) -> tuple[int, dict[str, str]]:
    """Run the steps as GitHub does: inputs filled in, outputs passed on, `if` obeyed; the code of the last step."""
    given = {name: str(about.get("default", "")) for name, about in ACTION["inputs"].items()}
    given |= {"token": "secret", "install": "false", **inputs}
    facts = {f"inputs.{name}": value for name, value in given.items()}
    facts |= {"github.action_path": str(ROOT), "github.event.pull_request.number": "7"}
    outputs = folder / "outputs.txt"
    outputs.write_text("")
    code = 0
    for step in ACTION["runs"]["steps"]:
        if (step["name"], given["install"]) == ("Install", "false") or (step["name"], given["run"]) == (
            "Run the study",
            "false",
        ):
            continue
        told = dict(line.split("=", 1) for line in outputs.read_text().splitlines())
        known = facts | {f"steps.{'run' if name == 'ran' else 'gate'}.outputs.{name}": v for name, v in told.items()}
        env = {
            name: re.sub(r"\$\{\{ (.*?) \}\}", lambda found, known=known: known.get(found[1], ""), value)
            for name, value in step.get("env", {}).items()
        }
        assert "${{" not in step["run"], "what comes from outside reaches a script through its environment only"
        around = os.environ | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "GITHUB_OUTPUT": str(outputs),
            "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
            "GITHUB_API_URL": f"http://127.0.0.1:{api.server_port}",
            "GITHUB_REPOSITORY": "owner/name",
        }
        done = subprocess.run(["bash", "-e", "-c", step["run"]], cwd=folder, env=around | env, capture_output=True)
        code = done.returncode
        with (folder / "log.txt").open("ab") as log:
            log.write(done.stdout + done.stderr)
        assert step["name"] == "Answer" or code == 0, done.stderr.decode()
    return code, dict(line.split("=", 1) for line in outputs.read_text().splitlines())


def test_the_comment_is_written_once_and_updated_on_the_second_run(api, audit, tmp_path):
    code, told = run_steps(tmp_path, api, results=str(audit), rules="rate.soft_erasure <= 1\n")
    assert (code, told["answer"]) == (0, "pass")
    assert len(api.comments) == 121 and "EvenEdit gate: pass" in api.comments[-1]["body"]
    rules = "rate.skin_lighter <= 0.0\n  rate.soft_erasure <= 1\n"
    code, told = run_steps(tmp_path, api, results=str(audit), rules=rules)
    assert code == {"fail": 1, "undecided": 3}[told["answer"]], "undecided is not a pass"
    assert len(api.comments) == 121 and f"EvenEdit gate: {told['answer']}" in api.comments[-1]["body"]
    assert api.calls == ["GET", "GET", "POST", "GET", "GET", "PATCH"], "comments come in pages"
    assert "<testsuite" in (tmp_path / "evenedit-gate.xml").read_text()
    assert "EvenEdit gate: pass" in (tmp_path / "summary.md").read_text()


def test_two_gates_of_one_pull_request_have_a_comment_each(api, audit, tmp_path):
    for name in ("one", "two"):
        run_steps(tmp_path, api, results=str(audit), rules="rate.soft_erasure <= 1", name=name)
    assert len(api.comments) == 122


def test_a_mistake_is_told_and_is_no_pass(api, audit, tmp_path):
    code, told = run_steps(tmp_path, api, results=str(audit), rules="all is well")
    assert (code, told["answer"]) == (2, "mistake")
    assert "is not understood" in api.comments[-1]["body"]


def test_without_a_rule_or_baseline_it_says_what_is_missing(api, audit, tmp_path):
    code, told = run_steps(tmp_path, api, results=str(audit))
    assert (code, told["answer"]) == (2, "mistake")
    assert "unbound variable" not in (tmp_path / "log.txt").read_text()


def test_a_run_that_is_not_complete_replaces_the_answer_of_the_former_one(api, audit, tmp_path):
    run_steps(tmp_path, api, results=str(audit), rules="rate.soft_erasure <= 1")
    assert "EvenEdit gate: pass" in api.comments[-1]["body"]
    code, told = run_steps(tmp_path, api, results="no-study", rules="rate.soft_erasure <= 1", run="true")
    assert (code, told["answer"]) == (2, "incomplete"), "the exit code of evenedit run"
    assert len(api.comments) == 121 and "evenedit run ended with exit code 2" in api.comments[-1]["body"]


def test_a_token_that_may_not_comment_is_a_warning_and_the_answer_stands(api, audit, tmp_path):
    api.forbidden = True
    code, told = run_steps(tmp_path, api, results=str(audit), rules="rate.soft_erasure <= 1\r\n")
    assert (code, told["answer"]) == (0, "pass")
    assert "::warning::the comment could not be written" in (tmp_path / "log.txt").read_text()


def test_where_a_step_before_the_gate_failed_no_former_answer_is_left(api, tmp_path):
    (tmp_path / "evenedit-gate.md").write_text("### EvenEdit gate: pass\n")
    url = f"http://127.0.0.1:{api.server_port}"
    around = {"GITHUB_API_URL": url, "GITHUB_REPOSITORY": "owner/name", "TOKEN": "secret", "NUMBER": "7", "ANSWER": ""}
    command = [sys.executable, str(ROOT / "scripts/action/comment.py"), "evenedit-gate.md"]
    subprocess.run(command, cwd=tmp_path, env=os.environ | around, check=True)
    assert "no answer" in api.comments[-1]["body"] and "pass" not in api.comments[-1]["body"]


def test_the_action_installs_the_release_that_it_is_of():
    install = next(step for step in ACTION["runs"]["steps"] if step["name"] == "Install")
    assert ACTION["inputs"]["install"]["default"] == "" and '${INSTALL:-"$ACTION"}' in install["run"]
