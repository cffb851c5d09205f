"""Files and batch jobs of the SIMULATED providers, in memory, in each provider's own form.

    OpenAI   POST /v1/files, POST /v1/batches, GET /v1/batches[/ID], GET /v1/files/ID/content, DELETE /v1/files/ID
    Gemini   POST /upload/…/files (resumable), POST …/models/M:batchGenerateContent, GET …/batches[/ID], GET …:download,
             GET …/files, DELETE …/files/ID

Each line of a job is answered as the same request would be answered by itself. Gemini's results come in another order
than its requests, as real ones do.
"""

from __future__ import annotations

import json
import re
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from threading import Lock
from typing import Any

LineAnswer = tuple[int, Any]
"""Status and body of the answer to one line."""
Sent = tuple[int, bytes, dict[str, str]]
"""Status, body and headers of an answer."""
GOOGLE = "x-goog-api-key"
"""The header by which Google's SDK is known."""
ENQUEUED = (
    "Enqueued token limit reached for this model. Limit: 90,000 enqueued tokens. Please try again once some "
    "in_progress batches have been completed."
)
EXPIRED = "This request could not be executed before the completion window expired."


@dataclass(frozen=True, slots=True)
class JobEnding:
    """How a job is to end: a state in OpenAI's words, and how many of its lines are answered before that."""

    state: str = "completed"
    answered: int | None = None
    quota: bool = False
    """Whether it is turned away because too much is queued."""


@dataclass(slots=True)
class ProviderJob:
    """One batch job."""

    id: str
    provider: str
    model: str
    endpoint: str
    input_file: str
    tag: str
    created: float
    ending: JobEnding
    metadata: Mapping[str, str] = field(default_factory=dict)
    output: str | None = None
    errors: str | None = None
    lines: int = 0
    done: bool = False


class JobQueue:
    """Takes files in, runs jobs over them, hands results out."""

    def __init__(self, answer: Callable[[str, bytes], LineAnswer], seconds: float = 0.0) -> None:
        self.seconds = seconds
        """How long a job is under way."""
        self.endings: deque[JobEnding] = deque()
        """How the next jobs end; completed when none is left."""
        self.files: dict[str, bytes] = {}
        self.deleted: dict[str, bytes] = {}
        """Files that were deleted by those whose they are."""
        self.names: dict[str, str] = {}
        """What uploads were called, by file."""
        self.busiest = 0
        """The most jobs that were ever under way at once."""
        self.most_lines: int | None = None
        """The quota: lines of jobs that may be under way; a job that would exceed it is turned away."""
        self.jobs: dict[str, ProviderJob] = {}
        self.page = 100
        """How many jobs a page of a listing holds."""
        self._answer = answer
        self._numbers = count(1)
        self._lock = Lock()

    def handles(self, method: str, path: str) -> bool:
        """Whether a request is about files or jobs."""
        return any(method == m and re.fullmatch(p, path) for m, p, _ in self._routes())

    def serve(self, method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str], body: bytes) -> Sent:
        """Answer a request about files or jobs."""
        for wanted, pattern, act in self._routes():
            found = re.fullmatch(pattern, path)
            if method == wanted and found:
                with self._lock:
                    return act(found.groupdict(), query, headers, body)
        return _json(404, {"error": {"message": f"no such path: {path}"}})

    def _routes(self) -> list[tuple[str, str, Callable[..., Sent]]]:
        v = r"/v1(?:beta)?"
        return [
            ("POST", r"/v1/files", self._upload),
            ("GET", r"/v1/files/(?P<id>[^/]+)/content", self._content),
            ("GET", rf"{v}/files", self._list_files),
            ("DELETE", rf"{v}/files/(?P<id>[^/]+)", self._delete),
            ("POST", r"/v1/batches", self._create),
            ("GET", rf"{v}/batches", self._list),
            ("GET", rf"{v}/batches/(?P<id>[^/]+)", self._get),
            ("POST", rf"/upload{v}/files(?:/(?P<id>[^/]+))?", self._upload_resumable),
            ("POST", rf"{v}/models/(?P<model>[^/:]+):batchGenerateContent", self._create_gemini),
            ("GET", rf"{v}/files/(?P<id>[^/:]+):download", self._content),
        ]

    # -- files ---------------------------------------------------------------------------------------------

    def _keep(self, content: bytes) -> str:
        name = f"file-{next(self._numbers)}"
        self.files[name] = content
        return name

    def _upload(self, _: Any, __: Any, headers: Mapping[str, str], body: bytes) -> Sent:
        boundary = headers["content-type"].split("boundary=")[1].encode()
        parts = [part.split(b"\r\n\r\n", 1) for part in body.split(b"--" + boundary)[1:-1]]
        content = next(content.removesuffix(b"\r\n") for head, content in parts if b"filename=" in head)
        name = self._keep(content)
        described = {"object": "file", "filename": "batch.jsonl", "purpose": "batch", "status": "processed"}
        return _json(200, {"id": name, "bytes": len(content), "created_at": int(time.time()), **described})

    def _upload_resumable(self, names: Mapping[str, str], _: Any, headers: Mapping[str, str], body: bytes) -> Sent:
        command = headers.get("x-goog-upload-command", "")
        if command == "start":
            name = self._keep(b"")
            self.names[name] = _display_name(json.loads(body or b"{}"))
            where = f"http://{headers['host']}/upload/v1beta/files/{name}"
            return 200, b"{}", {"X-Goog-Upload-URL": where, "X-Goog-Upload-Status": "active"}
        name = names["id"]
        self.files[name] += body
        if "finalize" not in command:
            return 200, b"", {"X-Goog-Upload-Status": "active"}
        status, content, kept = _json(200, {"file": {"name": f"files/{name}", "sizeBytes": str(len(self.files[name]))}})
        return status, content, {**kept, "X-Goog-Upload-Status": "final"}

    def _content(self, names: Mapping[str, str], *_: Any) -> Sent:
        content = self.files.get(names["id"])
        if content is None:
            return _json(404, {"error": {"message": f"no such file: {names['id']}"}})
        return 200, content, {"Content-Type": "application/octet-stream"}

    def _list_files(self, *_: Any) -> Sent:
        known = [{"name": f"files/{n}", "displayName": said} for n, said in self.names.items() if n in self.files]
        return _json(200, {"files": known})

    def _delete(self, names: Mapping[str, str], _: Any, headers: Mapping[str, str], __: bytes) -> Sent:
        name = names["id"]
        if name not in self.files:
            missing = {"code": 404, "message": f"no such file: {name}", "status": "NOT_FOUND"}
            return _json(404, {"error": missing})
        self.deleted[name] = self.files.pop(name)
        return _json(200, {} if GOOGLE in headers else {"id": name, "object": "file", "deleted": True})

    @property
    def uploaded(self) -> dict[str, bytes]:
        """Every file there ever was."""
        return {**self.deleted, **self.files}

    # -- jobs ----------------------------------------------------------------------------------------------

    def _begin(self, provider: str, model: str, endpoint: str, file: str, tag: str, metadata: Any) -> ProviderJob:
        number = next(self._numbers)
        name = f"batch_{number}" if provider == "openai" else str(number)
        ending = self.endings.popleft() if self.endings else JobEnding()
        under_way = sum(len(self.files[j.input_file].splitlines()) for j in self.jobs.values() if not j.done)
        if self.most_lines is not None and under_way + len(self.files[file].splitlines()) > self.most_lines:
            ending = JobEnding("failed", quota=True)
        job = ProviderJob(name, provider, model, endpoint, file, tag, time.time(), ending, metadata or {})
        self.jobs[name] = job
        self.busiest = max(self.busiest, sum(not j.done for j in self.jobs.values()))
        return job

    def _advance(self, job: ProviderJob) -> None:
        """Answer the lines of a job whose time has come."""
        if job.done or time.time() - job.created < self.seconds:
            return
        job.done = True
        asked = [json.loads(line) for line in self.files[job.input_file].splitlines() if line.strip()]
        job.lines = len(asked)
        if job.ending.state == "failed":
            return
        answered = asked if job.ending.answered is None else asked[: job.ending.answered]
        results = [self._result(job, line) for line in answered]
        late = [_late(line) for line in asked[len(answered) :] if job.ending.state == "expired"]
        if job.provider == "openai":
            good = [line for line in results if line["response"]["status_code"] == 200]
            bad = [line for line in results if line["response"]["status_code"] != 200] + late
            job.output = self._keep(_lines(good)) if good else None
            job.errors = self._keep(_lines(bad)) if bad else None
        elif results:
            job.output = self._keep(_lines(results[::-1]))

    def _result(self, job: ProviderJob, line: Mapping[str, Any]) -> dict[str, Any]:
        if job.provider == "openai":
            status, body = self._answer(line["url"], json.dumps(line["body"]).encode())
            response = {"status_code": status, "request_id": "req_1", "body": body}
            return {"id": "batch_req_1", "custom_id": line["custom_id"], "response": response, "error": None}
        path = f"/v1beta/models/{job.model}:generateContent"
        status, body = self._answer(path, json.dumps(line["request"]).encode())
        if status == 200:
            return {"key": line["key"], "response": body}
        return {"key": line["key"], "error": body.get("error") if isinstance(body, dict) else {"message": str(body)}}

    def _create(self, _: Any, __: Any, ___: Any, body: bytes) -> Sent:
        asked = json.loads(body)
        if asked["input_file_id"] not in self.files:
            return _json(400, {"error": {"message": "no such file", "code": "invalid_value"}})
        metadata = asked.get("metadata") or {}
        tag = metadata.get("evenedit", "")
        job = self._begin("openai", "", asked["endpoint"], asked["input_file_id"], tag, metadata)
        return _json(200, self._openai(job))

    def _openai(self, job: ProviderJob) -> dict[str, Any]:
        self._advance(job)
        failed = job.done and job.ending.state == "failed"
        problem = {"code": "invalid_json_line", "line": 1, "message": "This line is not parseable as valid JSON."}
        if job.ending.quota:
            problem = {"code": "token_limit_exceeded", "line": None, "message": ENQUEUED}
        return {
            "id": job.id,
            "object": "batch",
            "endpoint": job.endpoint,
            "completion_window": "24h",
            "created_at": int(job.created),
            "input_file_id": job.input_file,
            "status": job.ending.state if job.done else "in_progress",
            "output_file_id": job.output,
            "error_file_id": job.errors or "",  # empty, not absent, as real ones are
            "errors": {"object": "list", "data": [problem]} if failed else None,
            "metadata": dict(job.metadata),
            "request_counts": {"total": job.lines, "completed": job.lines, "failed": 0},
        }

    def _list(self, _: Any, query: Mapping[str, str], headers: Mapping[str, str], __: bytes) -> Sent:
        if GOOGLE in headers:  # the paths are the same at both
            return self._list_gemini(query)
        known = [j for j in reversed(self.jobs.values()) if j.provider == "openai"]
        after = query.get("after")
        begin = next((n + 1 for n, j in enumerate(known) if j.id == after), 0)
        page = known[begin : begin + self.page]
        more = begin + len(page) < len(known)
        return _json(200, {"object": "list", "data": [self._openai(j) for j in page], "has_more": more})

    def _get(self, names: Mapping[str, str], _: Any, headers: Mapping[str, str], __: bytes) -> Sent:
        job = self.jobs.get(names["id"])
        if GOOGLE in headers:
            missing = {"code": 404, "message": "no such batch", "status": "NOT_FOUND"}
            return _json(200, self._gemini(job)) if job else _json(404, {"error": missing})
        return _json(200, self._openai(job)) if job else _json(404, {"error": {"message": "no such batch"}})

    def _create_gemini(self, names: Mapping[str, str], _: Any, __: Any, body: bytes) -> Sent:
        asked = json.loads(body)["batch"]
        file = asked["inputConfig"]["fileName"].removeprefix("files/")
        if file not in self.files:
            return _json(400, {"error": {"code": 400, "message": "no such file", "status": "INVALID_ARGUMENT"}})
        job = self._begin("gemini", names["model"], "", file, asked.get("displayName", ""), None)
        if job.ending.quota:
            del self.jobs[job.id]
            note = "Resource has been exhausted (e.g. check quota)."
            return _json(429, {"error": {"code": 429, "message": note, "status": "RESOURCE_EXHAUSTED"}})
        return _json(200, self._gemini(job))

    def _gemini(self, job: ProviderJob) -> dict[str, Any]:
        self._advance(job)
        states = {"completed": "SUCCEEDED", "failed": "FAILED", "expired": "EXPIRED", "cancelled": "CANCELLED"}
        state = states[job.ending.state] if job.done else "RUNNING"
        made = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(job.created))
        metadata = {
            "@type": "type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch",
            "model": f"models/{job.model}",
            "displayName": job.tag,
            "state": f"BATCH_STATE_{state}",
            "createTime": made,
            "name": f"batches/{job.id}",
            **({"output": {"responsesFile": f"files/{job.output}"}} if job.output else {}),
        }
        return {"name": f"batches/{job.id}", "metadata": metadata, "done": job.done}

    def _list_gemini(self, query: Mapping[str, str]) -> Sent:
        known = [j for j in reversed(self.jobs.values()) if j.provider == "gemini"]
        begin = int(query.get("pageToken", 0))
        page = [self._gemini(j) for j in known[begin : begin + self.page]]
        more = {"nextPageToken": str(begin + len(page))} if begin + len(page) < len(known) else {}
        return _json(200, {"operations": page, **more})


def _display_name(upload: Mapping[str, Any]) -> str:
    """What an upload is called; the API takes names in both spellings."""
    file = upload.get("file", {})
    return str(file.get("displayName") or file.get("display_name") or "")


def _late(line: Mapping[str, Any]) -> dict[str, Any]:
    error = {"code": "batch_expired", "message": EXPIRED}
    return {"id": "batch_req_1", "custom_id": line.get("custom_id"), "response": None, "error": error}


def _lines(values: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def _json(status: int, value: Any) -> Sent:
    return status, json.dumps(value).encode(), {"Content-Type": "application/json"}
