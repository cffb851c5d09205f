"""A local server that speaks the wire formats of image services: BFL, fal, Replicate, ComfyUI, and a plain one."""

from __future__ import annotations

import base64
import io
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.message import Message
from email.parser import BytesParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from PIL import Image, ImageOps


class Services:
    """What the server is told to do, and what it saw."""

    def __init__(self) -> None:
        self.address = ""
        self.mode = "success"
        """success, refusal, words, failed, broken, never or missing"""
        self.waits = 2
        """Looks at a job that find it queued."""
        self.errors: list[int] = []
        """Statuses of the next answers, before anything else."""
        self.trouble: Callable[[str, str], tuple[int, bytes, str] | str | None] = lambda _method, _path: None
        """By method and path, what is answered instead: status, content and its type; `drop` does what was asked and
        closes the connection."""
        self.seen: list[tuple[str, str, dict[str, str], Any]] = []
        self.jobs: dict[str, dict[str, Any]] = {}
        self.files: dict[str, bytes] = {}
        self.lock = threading.Lock()
        self.keys: dict[str, str] = {}
        """Jobs by the key of the submission."""

    def posts(self, path: str = "") -> list[Any]:
        return [body for method, where, _, body in self.seen if method == "POST" and path in where]


def edited(content: bytes) -> bytes:
    """What the services do to a portrait."""
    made = io.BytesIO()
    ImageOps.invert(Image.open(io.BytesIO(content)).convert("RGB")).save(made, "PNG")
    return made.getvalue()


def plain(text: str) -> bytes:
    return base64.b64decode(text.partition(",")[2] if text.startswith("data:") else text)


class Handler(BaseHTTPRequestHandler):
    services: Services

    def log_message(self, *_: Any) -> None:
        pass

    is_silent = False

    def say(self, status: int, body: Any, kind: str = "application/json", **headers: str) -> None:
        if self.is_silent:
            return
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(content)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(content)

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        kind = self.headers.get("Content-Type", "")
        body = json.loads(content) if kind.startswith("application/json") else _form(kind, content)
        self.answer("POST", body)

    def do_GET(self) -> None:
        self.answer("GET", None)

    def answer(self, method: str, body: Any) -> None:
        told, path = self.services, urlsplit(self.path).path
        told.seen.append((method, self.path, {k.lower(): v for k, v in self.headers.items()}, body))
        if told.errors and "/picture/" not in path:
            status = told.errors.pop(0)
            self.say(status, {"detail": "slow down" if status == 429 else "trouble"}, Retry_After="0")
            return
        trouble = told.trouble(method, self.path)
        self.is_silent = trouble == "drop"
        if isinstance(trouble, tuple):
            self.say(*trouble)
            return
        for pattern, speak in ROUTES:
            if found := re.fullmatch(pattern, path):
                speak(self, found, body)
                return
        self.say(404, {"detail": f"no {path}"})

    # -- shared ------------------------------------------------------------------------------------------

    def begin(self, picture: bytes, **about: Any) -> str:
        made = edited(picture)
        with self.services.lock:
            ident = f"job-{len(self.services.jobs) + 1}"
            self.services.jobs[ident] = {"left": self.services.waits, "picture": made, **about}
        return ident

    def waits(self, ident: str) -> bool:
        job = self.services.jobs[ident]
        job["left"] -= 1
        return job["left"] >= 0 or self.services.mode == "never"

    def url_of(self, ident: str) -> str:
        return f"{self.services.address}/picture/{ident}.png"

    def picture(self, found: re.Match[str], _: Any) -> None:
        made = self.services.jobs[found[1]]["picture"]
        self.say(200, made[: len(made) // 2] if self.services.mode == "broken" else made, "image/png")

    # -- Black Forest Labs -------------------------------------------------------------------------------

    def bfl(self, _: re.Match[str], body: Any) -> None:
        ident = self.begin(plain(body["input_image"]))
        self.say(200, {"id": ident, "polling_url": f"{self.services.address}/bfl/v1/get_result?id={ident}"})

    def bfl_result(self, *_: Any) -> None:
        ident = parse_qs(urlsplit(self.path).query)["id"][0]
        status = "Pending" if self.waits(ident) else "Ready"
        ending = {"refusal": "Content Moderated", "failed": "Error"}.get(self.services.mode)
        if status == "Ready" and ending:
            self.say(
                200, {"id": ident, "status": ending, "result": None, "details": {"Moderation Reasons": ["Safety"]}}
            )
        else:
            result = {"sample": self.url_of(ident)} if status == "Ready" and self.services.mode != "missing" else None
            self.say(200, {"id": ident, "status": status, "result": result})

    # -- fal ---------------------------------------------------------------------------------------------

    def fal(self, _: re.Match[str], body: Any) -> None:
        ident = self.begin(plain(body["image_url"]))
        place = f"{self.services.address}/fal/requests/{ident}"
        self.say(
            200, {"request_id": ident, "status": "IN_QUEUE", "status_url": f"{place}/status", "response_url": place}
        )

    def fal_status(self, found: re.Match[str], _: Any) -> None:
        waiting = self.waits(found[1])
        self.say(202 if waiting else 200, {"status": "IN_PROGRESS" if waiting else "COMPLETED"})

    def fal_result(self, found: re.Match[str], _: Any) -> None:
        if self.services.mode == "refusal":
            detail = {
                "loc": ["body", "prompt"],
                "msg": "flagged by a content checker",
                "type": "content_policy_violation",
            }
            self.say(422, {"detail": [detail]})
        elif self.services.mode == "failed":
            self.say(500, {"detail": [{"loc": ["body"], "msg": "a runner failed", "type": "internal_server_error"}]})
        else:
            images = [] if self.services.mode == "missing" else [{"url": self.url_of(found[1])}]
            self.say(200, {"images": images, "has_nsfw_concepts": [False]})

    # -- Replicate ---------------------------------------------------------------------------------------

    def replicate(self, _: re.Match[str], body: Any) -> None:
        ident = self.begin(plain(body["input"]["input_image"]))
        place = f"{self.services.address}/replicate/v1/predictions/{ident}"
        self.say(201, {"id": ident, "status": "starting", "output": None, "error": None, "urls": {"get": place}})

    def prediction(self, found: re.Match[str], _: Any) -> None:
        said: dict[str, Any] = {"id": found[1], "status": "processing", "output": None, "error": None}
        if not self.waits(found[1]):
            error = {
                "refusal": "The input or output was flagged as sensitive. Please try again with other inputs. (E005)",
                "failed": "CUDA out of memory",
            }.get(self.services.mode)
            output = None if self.services.mode == "missing" else self.url_of(found[1])
            said |= {"status": "failed", "error": error} if error else {"status": "succeeded", "output": output}
        self.say(200, said)

    # -- ComfyUI -----------------------------------------------------------------------------------------

    def upload(self, _: re.Match[str], body: Any) -> None:
        name, content = body["image"]
        self.services.files[name] = content
        self.say(200, {"name": name, "subfolder": "", "type": "input"})

    def prompt(self, _: re.Match[str], body: Any) -> None:
        node = next(n for n in body["prompt"].values() if n["class_type"] == "LoadImage")
        self.say(200, {"prompt_id": self.begin(self.services.files[node["inputs"]["image"]]), "number": 1})

    def history(self, found: re.Match[str], _: Any) -> None:
        if self.waits(found[1]):
            self.say(200, {})
            return
        failed = self.services.mode in ("failed", "refusal")
        picture = {"filename": f"{found[1]}.png", "subfolder": "a b", "type": "output"}
        outputs = {} if failed or self.services.mode == "missing" else {"7": {"text": []}, "9": {"images": [picture]}}
        status = {"status_str": "error" if failed else "success", "messages": [["execution_error", "no memory"]]}
        self.say(200, {found[1]: {"outputs": outputs, "status": status}})

    def view(self, *_: Any) -> None:
        query = parse_qs(urlsplit(self.path).query)
        assert query["subfolder"] == ["a b"] and query["type"] == ["output"]
        found = re.fullmatch(r"(.*)\.png", query["filename"][0])
        assert found
        self.picture(found, None)

    # -- a server that speaks OpenAI's format ------------------------------------------------------------

    def images_edits(self, _: re.Match[str], body: Any) -> None:
        name = next(name for name in body if name.startswith("image"))
        ident = self.begin(body[name][1])
        self.say(200, {"created": 1, "data": [{"url": self.url_of(ident)}]})

    # -- a server that knows a submission that is sent again -----------------------------------------------

    def keyed(self, _: re.Match[str], body: Any) -> None:
        key = self.headers["Idempotency-Key"]
        known = self.services.keys
        if key not in known:
            known[key] = self.begin(plain(body["image_url"]))
        self.say(200, {"images": [{"url": self.url_of(known[key])}]})

    # -- a server without a queue ------------------------------------------------------------------------

    def direct(self, _: re.Match[str], body: Any) -> None:
        ident = self.begin(body["picture"][1])
        if self.services.mode == "refusal":
            self.say(400, {"error": {"code": "unsafe_request", "message": "not this"}})
        elif self.services.mode == "words":
            self.say(200, {"images": [], "description": "Which person do you mean?"})
        else:
            self.picture(re.fullmatch("(.*)", ident), None)  # type: ignore[arg-type]


ROUTES: list[tuple[str, Any]] = [
    (r"/picture/(.+)\.png", Handler.picture),
    (r"/bfl/v1/get_result", Handler.bfl_result),
    (r"/bfl/v1/.+", Handler.bfl),
    (r"/fal/requests/([^/]+)/status", Handler.fal_status),
    (r"/fal/requests/([^/]+)", Handler.fal_result),
    (r"/fal/.+", Handler.fal),
    (r"/replicate/v1/predictions/(.+)", Handler.prediction),
    (r"/replicate/v1/models/.+/predictions", Handler.replicate),
    (r"/comfyui/upload/image", Handler.upload),
    (r"/comfyui/prompt", Handler.prompt),
    (r"/comfyui/history/(.+)", Handler.history),
    (r"/comfyui/view", Handler.view),
    (r"/openai/v1/images/edits", Handler.images_edits),
    (r"/keyed", Handler.keyed),
    (r"/direct", Handler.direct),
]


def _form(kind: str, content: bytes) -> dict[str, Any]:
    """Multipart fields: texts, and files as name and content."""
    message: Message = BytesParser().parsebytes(f"Content-Type: {kind}\r\n\r\n".encode() + content)
    found: dict[str, Any] = {}
    for part in message.get_payload():
        name, file = (part.get_param(p, header="content-disposition") for p in ("name", "filename"))
        body = part.get_payload(decode=True)
        found[str(name)] = (file, body) if file else body.decode()
    return found


@contextmanager
def serving() -> Iterator[Services]:
    told = Services()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Told", (Handler,), {"services": told}))
    told.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield told
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
