"""A server on loopback that speaks the providers' wire formats, for the real SDKs to talk to. It is SIMULATED.

    with Wire() as wire:
        wire.will(rate_limit(3), SUCCESS)         # one behaviour per request, in order; success when none is left
        … call a provider with base_url=wire.openai or wire.gemini …
        wire.seen[0].instruction                  # what arrived

A behaviour is a function from what was seen to an answer. An endpoint is a row of ENDPOINTS: how its path looks, how a
request is read, what success is. What a judge is asked succeeds with an answer made from the schema it sent along;
`says` puts other words into its mouth, in each endpoint's own form. Files and batch jobs are in `jobs`; the lines of a
job take their behaviours from the same script.

Every model names itself `simulated-…` in its replies.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from PIL import Image, ImageOps

from evenedit.core.records import SIMULATED
from tests.support.provider.jobs import JobQueue


@dataclass(frozen=True)
class Seen:
    """A request as it arrived."""

    provider: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    instruction: str = ""
    images: Sequence[bytes] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)
    schema: Mapping[str, Any] | None = None

    @property
    def model(self) -> str:
        """The model that was asked for."""
        named = re.search(r"/models/([^/:]+):", self.path)
        return named[1] if named else str(self.fields.get("model", ""))

    @property
    def speaker(self) -> str:
        """What the model calls itself in its reply."""
        return self.model if self.model.startswith(SIMULATED) else SIMULATED + self.model


@dataclass(frozen=True)
class ProviderAnswer:
    """What goes back. Status 0 closes the connection without an answer."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    after: float = 0.0


Behaviour = Callable[[Seen], ProviderAnswer]


def as_json(status: int, value: Any, **headers: str) -> ProviderAnswer:
    """An answer in JSON."""
    return ProviderAnswer(status, json.dumps(value).encode(), {"Content-Type": "application/json", **headers})


# -- endpoints -------------------------------------------------------------------------------------------------


def edited(images: Sequence[bytes], instruction: str) -> bytes:
    """The images as negatives side by side; the corner pixel encodes the instruction."""
    negatives = [ImageOps.invert(Image.open(io.BytesIO(content)).convert("RGB")) for content in images]
    canvas = Image.new("RGB", (sum(n.width for n in negatives), max(n.height for n in negatives)))
    left = 0
    for negative in negatives:
        canvas.paste(negative, (left, 0))
        left += negative.width
    canvas.putpixel((0, 0), corner(instruction))
    buffer = io.BytesIO()
    canvas.save(buffer, "PNG")
    return buffer.getvalue()


def corner(instruction: str) -> tuple[int, int, int]:
    """A colour that encodes the instruction."""
    red, green, blue = hashlib.sha256(instruction.encode()).digest()[:3]
    return red, green, blue


def read_multipart(seen: Seen) -> Seen:
    """An image edit as OpenAI takes it."""
    boundary = seen.headers["content-type"].split("boundary=")[1].encode()
    images, fields = [], {}
    for part in seen.body.split(b"--" + boundary)[1:-1]:
        head, content = part.removeprefix(b"\r\n").split(b"\r\n\r\n", 1)
        content = content.removesuffix(b"\r\n")
        name = re.search(rb'name="([^"]*)"', head)
        assert name, head
        if b"filename=" in head:
            assert name[1] in (b"image", b"image[]"), name[1]
            images.append(content)
        else:
            fields[name[1].decode()] = content.decode()
    return replace(seen, images=images, instruction=fields.get("prompt", ""), fields=fields)


def openai_image(seen: Seen, image: bytes | None = None) -> ProviderAnswer:
    """An edited image in OpenAI's form."""
    content = edited(seen.images, seen.instruction) if image is None else image
    return as_json(200, {"created": 1, "data": [{"b64_json": base64.b64encode(content).decode()}]})


def read_generate_content(seen: Seen) -> Seen:
    """A request in Gemini's form."""
    fields = json.loads(seen.body)
    parts = [part for content in fields["contents"] for part in content["parts"]]
    return replace(
        seen,
        images=[base64.urlsafe_b64decode(p["inlineData"]["data"]) for p in parts if "inlineData" in p],
        instruction="".join(p["text"] for p in parts if "text" in p),
        schema=fields.get("generationConfig", {}).get("responseJsonSchema"),
        fields=fields,
    )


def gemini_image(seen: Seen, image: bytes | None = None) -> ProviderAnswer:
    """An edited image in Gemini's form."""
    content = edited(seen.images, seen.instruction) if image is None else image
    return gemini_parts({"text": "Here it is."}, picture(content))(seen)


def read_chat(seen: Seen) -> Seen:
    """A request to chat completions."""
    fields = json.loads(seen.body)
    parts = [p for m in fields["messages"] for p in _listed(m["content"], "text")]
    return replace(
        seen,
        images=[_from_url(p["image_url"]["url"]) for p in parts if p["type"] == "image_url"],
        instruction="\n".join(p["text"] for p in parts if p["type"] == "text"),
        schema=fields.get("response_format", {}).get("json_schema", {}).get("schema"),
        fields=fields,
    )


def read_responses(seen: Seen) -> Seen:
    """A request to responses."""
    fields = json.loads(seen.body)
    parts = [p for m in fields["input"] for p in _listed(m["content"], "input_text")]
    return replace(
        seen,
        images=[_from_url(p["image_url"]) for p in parts if p["type"] == "input_image"],
        instruction="\n".join([fields["instructions"], *(p["text"] for p in parts if p["type"] == "input_text")]),
        schema=fields.get("text", {}).get("format", {}).get("schema"),
        fields=fields,
    )


def _listed(content: Any, kind: str) -> list[dict[str, Any]]:
    return [{"type": kind, "text": content}] if isinstance(content, str) else content


def _from_url(url: str) -> bytes:
    assert url.startswith("data:image/png;base64,")
    return base64.b64decode(url.split(",", 1)[1], validate=True)


def says(text: str, *, finish: str | None = None) -> Behaviour:
    """These words, and this ending in the provider's own terms; by default the normal one."""

    def answer(seen: Seen) -> ProviderAnswer:
        if seen.provider == "gemini":
            usage = {"promptTokenCount": 100, "candidatesTokenCount": 20, "thoughtsTokenCount": 3}
            candidate = {
                "index": 0,
                "finishReason": finish or "STOP",
                "content": {"role": "model", "parts": [{"text": text}] if text else []},
            }
            return as_json(200, {"candidates": [candidate], "usageMetadata": usage, "modelVersion": seen.speaker})
        if seen.path.endswith("/responses"):
            return _response(seen, [{"type": "output_text", "text": text, "annotations": []}], finish)
        return _chat(seen, {"content": text}, finish or "stop")

    return answer


def refuses(text: str) -> Behaviour:
    """OpenAI's refusal in the message itself."""

    def answer(seen: Seen) -> ProviderAnswer:
        if seen.path.endswith("/responses"):
            return _response(seen, [{"type": "refusal", "refusal": text}], None)
        return _chat(seen, {"content": None, "refusal": text}, "stop")

    return answer


def _chat(seen: Seen, message: dict[str, Any], finish: str) -> ProviderAnswer:
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "refusal": None, **message}}
    usage = {"prompt_tokens": 100, "completion_tokens": 23, "total_tokens": 123}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": seen.speaker}
    return as_json(200, {**head, "choices": [choice], "usage": usage})


def _response(seen: Seen, content: list[dict[str, Any]], incomplete: str | None) -> ProviderAnswer:
    status = "incomplete" if incomplete else "completed"
    thought = {"type": "reasoning", "id": "rs_1", "summary": []}
    message = {"type": "message", "id": "msg_1", "role": "assistant", "status": status, "content": content}
    usage = {"input_tokens": 100, "output_tokens": 23, "total_tokens": 123}
    head = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": seen.speaker,
        "status": status,
        "error": None,
    }
    details = {"reason": incomplete} if incomplete else None
    return as_json(200, {**head, "incomplete_details": details, "output": [thought, message], "usage": usage})


def from_schema(schema: Mapping[str, Any]) -> Any:
    """An answer that fits: the middle of every choice."""
    if "enum" in schema:
        return schema["enum"][len(schema["enum"]) // 2]
    if schema["type"] == "object":
        return {name: from_schema(inner) for name, inner in schema["properties"].items()}
    if schema["type"] == "array":
        return [from_schema(schema["items"])]
    return "as seen" if schema["type"] == "string" else 0.5


def answered(seen: Seen) -> ProviderAnswer:
    """An answer that fits the schema that was sent."""
    return says(json.dumps(from_schema(seen.schema)) if seen.schema else "What would you like to know?")(seen)


def gemini_content(seen: Seen) -> ProviderAnswer:
    """A judge's answer where there is a schema, an edited image elsewhere."""
    return answered(seen) if seen.schema else gemini_image(seen)


ENDPOINTS: list[tuple[str, str, Callable[[Seen], Seen], Behaviour]] = [
    ("openai", r"/v1/images/edits", read_multipart, openai_image),
    ("openai", r"/v1/chat/completions", read_chat, answered),
    ("openai", r"/v1/responses", read_responses, answered),
    ("gemini", r"/v1(?:beta)?/models/[^/:]+:generateContent", read_generate_content, gemini_content),
]


# -- behaviours ------------------------------------------------------------------------------------------------


def SUCCESS(seen: Seen) -> ProviderAnswer:  # noqa: N802 (reads as a constant in scripts)
    """The endpoint's normal answer."""
    return next(success for _, pattern, _, success in ENDPOINTS if re.fullmatch(pattern, seen.path))(seen)


def returns(image: bytes) -> Behaviour:
    """Success with these bytes as the image."""
    return lambda seen: {"openai": openai_image, "gemini": gemini_image}[seen.provider](seen, image)


def truncated(seen: Seen) -> ProviderAnswer:
    """Half an image."""
    whole = edited(seen.images, seen.instruction)
    return returns(whole[: len(whole) // 2])(seen)


def error(status: int, message: str, *, code: str | None = None, kind: str | None = None, **headers: str) -> Behaviour:
    """An error as the provider words it: `code` and `type` at OpenAI, `status` at Google."""

    def answer(seen: Seen) -> ProviderAnswer:
        if seen.provider == "openai":
            body: dict[str, Any] = {"message": message, "type": kind, "param": None, "code": code}
        else:
            body = {"code": status, "message": message, "status": kind or "UNKNOWN"}
        return as_json(status, {"error": body}, **headers)

    return answer


def rate_limit(retry_after: float | str | None = None) -> Behaviour:
    """429; how long to wait stands in a header at OpenAI and in the body at Google."""

    def answer(seen: Seen) -> ProviderAnswer:
        if seen.provider == "openai":
            headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
            body: dict[str, Any] = {"message": "Rate limit reached", "type": "images", "code": "rate_limit_exceeded"}
            return as_json(429, {"error": body}, **headers)
        body = {"code": 429, "message": "You exceeded your current quota", "status": "RESOURCE_EXHAUSTED"}
        if retry_after is not None:
            kind = "type.googleapis.com/google.rpc.RetryInfo"
            body["details"] = [{"@type": kind, "retryDelay": f"{retry_after}s"}]
        return as_json(429, {"error": body})

    return answer


def server_error(seen: Seen) -> ProviderAnswer:
    """Status 500."""
    return error(500, "The server had an error", kind="server_error")(seen)


def not_json(_: Seen) -> ProviderAnswer:
    """Closes the connection in the middle of the reply."""
    return ProviderAnswer(200, b'{"created": 1, "da', {"Content-Type": "application/json"})


def web_page(_: Seen) -> ProviderAnswer:
    """An HTML error page, as a proxy may send it."""
    return ProviderAnswer(200, b"<html>Welcome to the proxy</html>", {"Content-Type": "text/html"})


def drop(_: Seen) -> ProviderAnswer:
    """Closes the connection without an answer."""
    return ProviderAnswer(0, b"")


def slow(seconds: float, then: Behaviour = SUCCESS) -> Behaviour:
    """Answers after a while."""
    return lambda seen: replace(then(seen), after=seconds)


hang = slow(60)


def echo_key(status: int, message: str = "Consumer 'api_key:{}' has been suspended.") -> Behaviour:
    """An error whose message repeats the key it was sent, as real ones do."""

    def answer(seen: Seen) -> ProviderAnswer:
        key = seen.headers.get("x-goog-api-key") or seen.headers["authorization"].removeprefix("Bearer ")
        return error(status, message.format(key))(seen)

    return answer


def picture(content: bytes) -> dict[str, Any]:
    """An image as a part of Gemini's."""
    return {"inlineData": {"mimeType": "image/png", "data": base64.b64encode(content).decode()}}


def gemini_parts(*parts: dict[str, Any], finish: str = "STOP", message: str | None = None) -> Behaviour:
    """A Gemini candidate with these parts and this ending."""
    candidate: dict[str, Any] = {"finishReason": finish, "index": 0}
    if parts:
        candidate["content"] = {"role": "model", "parts": list(parts)}
    if message:
        candidate["finishMessage"] = message
    return lambda seen: as_json(200, {"candidates": [candidate], "modelVersion": seen.speaker})


def gemini_blocked(reason: str) -> Behaviour:
    """Gemini blocked the prompt."""
    body = {"promptFeedback": {"blockReason": reason}}
    return lambda seen: as_json(200, {**body, "modelVersion": seen.speaker})


# -- server ----------------------------------------------------------------------------------------------------


class FakeProvider:
    """The server, its script of behaviours, and the requests it saw."""

    def __init__(
        self,
        port: int = 0,
        *,
        latency: float = 0.0,
        concurrent: int | None = None,
        per_second: float | None = None,
        otherwise: Behaviour = SUCCESS,
        marked: bool = False,
        remember: bool = True,
    ) -> None:
        self.seen: list[Seen] = []
        self.asked = 0
        """Questions that arrived."""
        self.served = 0
        """Questions that were let in: neither over a limit nor unknown."""
        self.most_at_once = 0
        self.latency = latency
        """Seconds before a question is answered."""
        self.concurrent = concurrent
        """More questions than this at once are turned away with 429."""
        self.per_second = per_second
        """More questions than this in a second are turned away with 429."""
        self.otherwise = otherwise
        """What is done when the script is at its end."""
        self.marked = marked
        """Whether only models called `simulated-…` are known."""
        self.remember = remember
        """Whether requests are kept in `seen`."""
        self.queue = JobQueue(self._one_line)
        self._at_once = 0
        self._begun: deque[float] = deque()
        self._script: deque[Behaviour] = deque()
        self._queue_script: deque[Behaviour] = deque()
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._server = _Server(("127.0.0.1", port), _Handler)
        self._server.wire = self
        host, port = self._server.server_address[:2]
        self.gemini = f"http://{host!s}:{port}"
        self.openai = f"{self.gemini}/v1"

    def will(self, *behaviours: Behaviour) -> None:
        """Answer the coming questions like this, in order; the lines of a batch job are questions too."""
        with self._lock:
            self._script.extend(behaviours)

    def queue_will(self, *behaviours: Behaviour) -> None:
        """Answer the coming requests about files and jobs like this, in order."""
        with self._lock:
            self._queue_script.extend(behaviours)

    def __enter__(self) -> FakeProvider:
        threading.Thread(target=self.serve, daemon=True).start()
        return self

    def serve(self) -> None:
        """Serve until stopped."""
        self._server.serve_forever(0.01)

    def __exit__(self, *_: object) -> None:
        self._over.set()  # releases requests that are kept waiting
        self._server.shutdown()
        self._server.server_close()

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> ProviderAnswer:
        """What goes back to a request."""
        path, query = urlsplit(target).path, dict(parse_qsl(urlsplit(target).query))
        if self.queue.handles(method, path):
            return self._answer_of_the_queue(method, path, query, headers, body)
        seen = self.read(path, headers, body) if method == "POST" else None
        if seen is None:
            return as_json(404, {"error": {"message": f"no such path: {method} {path}"}})
        if (turned_away := self.refusal(seen)) is not None:
            return turned_away
        if self.marked and not seen.model.startswith(SIMULATED):
            message = (
                f"this provider is SIMULATED and knows models whose name begins with '{SIMULATED}', not '{seen.model}'"
            )
            return error(404, message, code="model_not_found", kind="NOT_FOUND")(seen)
        with self._lock:
            behaviour = self._next(seen)
            crowded = self._crowded()
            if not crowded:
                self.served += 1
                self._at_once += 1
                self.most_at_once = max(self.most_at_once, self._at_once)
        if crowded:
            return rate_limit()(seen)
        try:
            answer = behaviour(seen)
            self._over.wait(answer.after + self.latency)
            return answer
        finally:
            with self._lock:
                self._at_once -= 1

    def read(self, path: str, headers: Mapping[str, str], body: bytes) -> Seen | None:
        """A request as it is understood; None where there is no such path."""
        for provider, pattern, read, _ in ENDPOINTS:
            if re.fullmatch(pattern, path):
                return read(Seen(provider, path, headers, body))
        return None

    def refusal(self, seen: Seen) -> ProviderAnswer | None:
        """What is turned away because of its form; this server turns nothing away."""
        return None

    def _next(self, seen: Seen) -> Behaviour:
        self.asked += 1
        if self.remember:
            self.seen.append(seen)
        return self._script.popleft() if self._script else self.otherwise

    def _crowded(self) -> bool:
        if self.concurrent is not None and self._at_once >= self.concurrent:
            return True
        if self.per_second is not None:
            now = time.monotonic()
            while self._begun and self._begun[0] < now - 1:
                self._begun.popleft()
            if len(self._begun) >= self.per_second:
                return True
            self._begun.append(now)
        return False

    def _answer_of_the_queue(
        self, method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str], body: bytes
    ) -> ProviderAnswer:
        with self._lock:
            behaviour = self._queue_script.popleft() if self._queue_script else None
        if behaviour is not None:
            provider = "openai" if "authorization" in headers else "gemini"
            answer = behaviour(Seen(provider, path, headers, body))
            self._over.wait(answer.after)
            return answer
        status, content, headers_back = self.queue.serve(method, path, query, headers, body)
        return ProviderAnswer(status, content, headers_back)

    def _one_line(self, path: str, body: bytes) -> tuple[int, Any]:
        """The answer to one line of a batch job."""
        seen = self.read(path, {}, body)
        if seen is None or (self.marked and not seen.model.startswith(SIMULATED)):
            return 404, {"error": {"message": f"no such model or path: {path}", "code": "model_not_found"}}
        with self._lock:
            behaviour = self._next(seen)
        answer = behaviour(seen)
        try:
            return answer.status or 500, json.loads(answer.body)
        except ValueError:
            return answer.status or 500, answer.body.decode()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    wire: FakeProvider

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that was killed is no error of ours."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one packet: two would wait 40 ms for each other

    def do_POST(self) -> None:
        self._answer()

    def do_DELETE(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {key.lower(): value for key, value in self.headers.items()}
        answer = self.server.wire.answer(self.command, self.path, headers, body)
        if answer.status == 0:
            self.close_connection = True
            return
        try:
            self.send_response(answer.status)
            for key, value in answer.headers.items():
                self.send_header(key, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)
            self.wfile.flush()
        except ConnectionError:  # the client had waited long enough
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass
