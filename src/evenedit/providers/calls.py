"""Calls to a provider: one border for its errors, one place that retries, one gate for how many at once.

    Provider.call(ask)  =  retries( gate( border( ask(client) ) ) )

API editors use this, and so do judges. The SDKs' own retries are switched off, so that only this file decides. It
imports no SDK: it reads what their errors carry, which OpenAI, Gemini and look-alike endpoints share.
"""

from __future__ import annotations

import base64
import importlib
import io
import os
import random
import re
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from email.utils import parsedate_to_datetime
from threading import Condition, Lock
from typing import Any, Generic, TypeVar

from PIL import Image
from PIL.PngImagePlugin import PngImageFile

from evenedit.core.decode import decode
from evenedit.core.errors import EvenEditError, Failed, Failure
from evenedit.core.retry import try_again

RETRIED = frozenset({Failure.RATE_LIMIT, Failure.TIMEOUT, Failure.SERVER, Failure.CRASH})
"""Failures that may pass by themselves."""
FIRST_WAIT = 1.0
"""Seconds: the most that is waited before the first retry; doubled each time."""
LONGEST_WAIT = 60.0
"""Seconds: where doubling ends."""
PATIENCE = 300.0
"""Seconds: asked to wait longer than this, we give up for now; the next run tries again."""
DECLINING = (
    "moderation_blocked",
    "content_policy_violation",
    "image_content_policy_violation",
    "image_generation_user_error",
    "content_filter",
    "invalid_prompt",  # how OpenAI's models that reason say "flagged"
)
"""What providers call a policy refusal that arrives as an error."""

POLICY = frozenset(
    {
        "SAFETY",
        "RECITATION",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "IMAGE_SAFETY",
        "IMAGE_PROHIBITED_CONTENT",
        "IMAGE_RECITATION",
    }
)
"""Finish reasons that name a policy."""

Client = TypeVar("Client")
T = TypeVar("T")


class Declined(Exception):
    """The provider's explicit no, in its own words: neither a failure nor the user's mistake."""


class Gate:
    """Lets a bounded number of calls through at once: fewer after rate limits, slowly more after successes.

    Each call that is turned away takes one place with it, and one burst of them no more than half: where a provider
    takes 16 at once and 24 were sent, 8 are turned away and 16 places are left. After a storm that left one place,
    half of what there was is back after a few rounds, the rest one by one.
    """

    def __init__(self, most: int = 256) -> None:
        self.most = most
        self._limit = float(most)
        self._busy = 0
        self._bursts = 0
        self._floor = 1.0
        self._before = 0.0
        self._changed = Condition()

    @property
    def limit(self) -> int:
        """How many calls may be under way now."""
        return int(self._limit)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for a place and hold it for one call."""
        with self._changed:
            self._changed.wait_for(lambda: self._busy < self.limit)
            self._busy += 1
            burst = self._bursts
        try:
            yield
            with self._changed:
                # One more place per round of successes; far below what once went well, one per success.
                step = 1.0 if self._limit < self._before / 2 else 1 / self._limit
                self._limit = min(float(self.most), self._limit + step)
        except Failed as failed:
            if failed.failure is Failure.RATE_LIMIT:
                with self._changed:
                    self._narrow(burst)
            raise
        finally:
            with self._changed:
                self._busy -= 1
                self._changed.notify_all()

    def _narrow(self, burst: int) -> None:
        # From what is really under way: a limit that nobody reaches would have to be lowered many times.
        reached = min(self._limit, self._busy)
        if burst == self._bursts:  # it set out after the last burst had begun: a new one begins
            self._floor = max(1.0, reached / 2)
            self._bursts += 1
            if reached >= self._before / 2:  # not amid a recovery
                self._before = reached
        self._limit = max(self._floor, reached - 1)


class Provider(Generic[Client]):
    """A provider's client, made on first use, and every call to it under control."""

    def __init__(self, connect: Callable[[str], Client], *, model: str, key_env: str, attempts: int) -> None:
        if not re.fullmatch(r"[A-Z_][A-Z0-9_]*", key_env):  # not echoed: it may be the key itself
            raise EvenEditError(
                "setting 'api_key_env' must be the NAME of an environment variable that holds the API key"
            )
        if attempts < 1:
            raise EvenEditError(f"setting 'attempts' is {attempts}; it must be at least 1")
        self.gate = Gate()
        self.sleep: Callable[[float], None] = time.sleep
        self._connect = connect
        self._model = model
        self._key_env = key_env
        self.attempts = attempts
        self._client: Client | None = None
        self._lock = Lock()

    def call(self, ask: Callable[[Client], T], *, attempts: int | None = None) -> T:
        """Ask the client; retried where that can help. Raises Failed, Declined or EvenEditError."""
        client = self._connected()

        def once() -> T:
            with self.gate.turn(), border(model=self._model, key_env=self._key_env):
                return ask(client)

        return call_with_retries(once, attempts=attempts or self.attempts, sleep=self.sleep)

    def missing(self, module: str) -> list[str]:
        """What is needed before a call can be made and is not there."""
        found = []
        try:
            importlib.import_module(module)
        except ImportError:
            found.append(self._needs_extra())
        if not os.environ.get(self._key_env, "").strip():
            found.append(self._needs_key())
        return found

    def _needs_key(self) -> str:
        return f"model '{self._model}' needs an API key. Try: export {self._key_env}=…"

    def _needs_extra(self) -> str:
        return f"model '{self._model}' needs the 'api' extra. Try: pip install 'evenedit[api]'"

    def _connected(self) -> Client:
        with self._lock:
            if self._client is None:
                key = os.environ.get(self._key_env, "").strip()
                if not key:
                    raise EvenEditError(self._needs_key())
                try:
                    self._client = self._connect(key)
                except ImportError:
                    raise EvenEditError(self._needs_extra()) from None
            return self._client


def call_with_retries(
    call: Callable[[], T],
    *,
    attempts: int,
    sleep: Callable[[float], None] = time.sleep,
    draw: Callable[[], float] = random.random,
) -> T:
    """Call until it succeeds, fails for good, or was tried `attempts` times: exponential backoff with full jitter."""

    def helps(error: BaseException) -> bool:
        if not isinstance(error, Failed) or error.failure not in RETRIED:
            return False
        return error.retry_after is None or error.retry_after <= PATIENCE

    def wait(tried: int, error: BaseException) -> float:
        asked = error.retry_after if isinstance(error, Failed) else None
        # Never earlier than asked, and never all callers at the same moment.
        return draw() * min(LONGEST_WAIT, float(FIRST_WAIT * 2**tried)) + (asked or 0.0)

    return try_again(call, attempts=attempts, helps=helps, wait=wait, sleep=sleep)


@contextmanager
def border(*, model: str, key_env: str) -> Iterator[None]:
    """Foreign errors become ours here; what is neither the provider's nor the network's passes as it is."""
    try:
        yield
    except Exception as error:
        ours = _from_status(error, model, key_env) or _from_transport(error, model)
        if ours is None:
            raise
        raise ours from None  # the SDK's error holds the request, and with it the key


def to_png(image: Image.Image) -> bytes:
    """The pixels alone: notes in a stored picture name a person's labels, and are not written unless asked for."""
    if (stored := _stored(image)) is not None and (bare := _bare(stored)) is not None:
        return bare
    buffer = io.BytesIO()
    image.convert("RGB").save(buffer, "PNG")
    return buffer.getvalue()


def _stored(image: Image.Image) -> bytes | None:
    """The file of a PNG that nobody has decoded yet: encoding its pixels again would take 50 times as long."""
    file = getattr(image, "fp", None)
    if isinstance(image, PngImageFile) and image.tile and isinstance(file, io.BytesIO):
        return file.getvalue()
    return None


def _bare(png: bytes) -> bytes | None:
    """A PNG without anything but its pixels; None where it is damaged, or not plain 8-bit RGB."""
    kept, at, kind = [png[:8]], 8, b""
    while at < len(png):
        size, kind = int.from_bytes(png[at : at + 4], "big"), png[at + 4 : at + 8]
        chunk = png[at : at + 12 + size]
        if len(chunk) < 12 + size or zlib.crc32(chunk[4:-4]) != int.from_bytes(chunk[-4:], "big"):
            return None
        if kind == b"IHDR" and chunk[16:18] != b"\x08\x02":
            return None
        if kind in (b"IHDR", b"IDAT", b"IEND"):
            kept.append(chunk)
        at += 12 + size
    return b"".join(kept) if kind == b"IEND" else None


def to_image(content: bytes | str) -> Image.Image:
    """The picture that came back, as bytes or base64, decoded in full, so that a truncated one is found now."""
    try:
        if isinstance(content, str):
            content = base64.b64decode(content, validate=True)
        return decode(content)
    except (ValueError, EvenEditError) as error:
        raise Failed(Failure.BAD_IMAGE, f"what came back is not a readable image ({error})") from None


def _from_status(error: Exception, model: str, key_env: str) -> Exception | None:
    """What an answer with an HTTP error status means for us; None if there was no such answer."""
    status = getattr(error, "status_code", getattr(error, "code", None))
    if not isinstance(status, int) or status < 400:
        return None
    body = _body(error)
    # The most specific name: OpenAI's code before its type; Google's code is a number, its name the status.
    name = next((body[k] for k in ("code", "type", "status") if isinstance(body.get(k), str) and body[k]), "")
    message = _safe(str(body.get("message") or "no message"), key_env)
    detail = f"{status} {name}: {message}" if name else f"{status}: {message}"
    if status < 500 and name in DECLINING:
        return Declined(f"{name}: {message}")
    if status == 429 and name == "insufficient_quota":
        return EvenEditError(f"the account behind {key_env} has no credit left; top it up, then run again ({detail})")
    if status == 429:
        return Failed(Failure.RATE_LIMIT, f"rate limit ({detail})", retry_after=_retry_after(error, body))
    if status in (408, 504):
        return Failed(Failure.TIMEOUT, f"the provider ran out of time ({detail})")
    if status >= 500 or status == 409:  # 409 is OpenAI's "try again"
        return Failed(Failure.SERVER, f"the provider failed ({detail})", retry_after=_retry_after(error, body))
    if status == 401 or re.search("API_KEY_INVALID|API key not valid", str(body)):
        # Without the provider's message: OpenAI's repeats parts of the key.
        return EvenEditError(f"the API key in {key_env} was not accepted for model '{model}' ({status}); check the key")
    if status == 403:
        return EvenEditError(f"the account behind {key_env} may not use model '{model}' ({detail})")
    if status == 404:
        return EvenEditError(f"model '{model}' was not found, or is retired ({detail}); check 'model' and 'base_url'")
    if re.search("invalid_image|image_parse|(input|provided|uploaded) image", f"{name} {message}".lower()):
        return Failed(Failure.BAD_IMAGE, f"the provider could not read the image it was sent ({detail})")
    return EvenEditError(f"model '{model}' did not accept the request ({detail}); check the settings")


def _from_transport(error: Exception, model: str) -> Failed | None:
    """What it means that no usable answer came."""
    # By name: google-genai lets the errors of its HTTP library through, httpx or httpx2, whichever is installed.
    names = {kind.__name__ for kind in type(error).__mro__}
    if names & {"APITimeoutError", "TimeoutException", "TimeoutError"}:
        return Failed(Failure.TIMEOUT, f"model '{model}' did not answer in time")
    if names & {"APIConnectionError", "RequestError"}:
        return Failed(Failure.SERVER, f"the connection to model '{model}' failed ({type(error).__name__})")
    if names & {"APIResponseValidationError", "UnknownApiResponseError", "JSONDecodeError", "ValidationError"}:
        return Failed(Failure.SERVER, f"the reply of model '{model}' could not be read ({type(error).__name__})")
    return None


def _body(error: Exception) -> Mapping[str, Any]:
    """The error object of either provider; openai unwraps it, google-genai does not."""
    body = getattr(error, "body", None) or getattr(error, "details", None)
    if isinstance(body, Mapping) and isinstance(body.get("error"), Mapping):
        body = body["error"]
    return body if isinstance(body, Mapping) else {}


def _safe(message: str, key_env: str) -> str:
    """A provider's message, shortened, without the key: Google's name the key they suspend."""
    key = os.environ.get(key_env, "").strip()
    return " ".join((message.replace(key, "<key>") if key else message).split())[:400]


def _retry_after(error: Exception, body: Mapping[str, Any]) -> float | None:
    """Seconds we were asked to wait: OpenAI says so in a header, as a number or a date, Google in the body ("34s")."""
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    details = body.get("details")
    delays = [d.get("retryDelay") for d in details if isinstance(d, Mapping)] if isinstance(details, list) else []
    for text in (str(t) for t in (headers.get("retry-after"), *delays) if t is not None):
        with suppress(ValueError):
            return max(0.0, float(text.removesuffix("s")))
        with suppress(ValueError):
            return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    return None
