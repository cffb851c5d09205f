"""Calls to a provider: translated errors, retries, and a limit on concurrent calls.

    Provider.call(ask)  =  retries( gate( border( ask(client) ) ) )

API editors use this, and so do judges. The SDKs' own retries are switched off, so that only this file decides. It
imports no SDK: it reads what their errors carry, which OpenAI, Gemini and look-alike endpoints share.
"""

from __future__ import annotations

import base64
import importlib
import io
import math
import os
import random
import re
import time
import weakref
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from email.utils import parsedate_to_datetime
from threading import Condition, Lock
from typing import Any, Generic, Protocol, TypeVar

from PIL import Image
from PIL.PngImagePlugin import PngImageFile

from evenedit.core.decode import decode
from evenedit.core.errors import EvenEditError, Failed, Failure
from evenedit.core.retry import try_again
from evenedit.core.submissions import PendingError

NO_KEY = "no-key"
"""What is sent in place of a key where none is asked for."""
RETRIED = frozenset({Failure.RATE_LIMIT, Failure.TIMEOUT, Failure.SERVER, Failure.CRASH})
"""Failures that may pass by themselves."""
FIRST_WAIT = 1.0
"""Seconds: the most that is waited before the first retry; doubled each time."""
LONGEST_WAIT = 60.0
"""Seconds: where doubling ends."""
PATIENCE = 300.0
"""Seconds: asked to wait longer than this, we give up for now; the next run tries again."""
START = 16
"""Calls under way at once when nothing is known about a provider."""
GROWTH = 0.25
"""Places that a success adds while the level is not known: a quarter per round."""
RECOVERY = 2.0
"""Places that a success adds far below the level."""
NEARLY = 0.95
"""The share of the level that is soon reached again."""
BEYOND = 1.1
"""Above so many times the level it is looked for anew."""
LEAST = 0.125
"""The share of the level that a storm leaves: calls that find out when it is over."""
SLOWER = 2.0
"""Answers that take so many times as long as with fewer calls under way: there are enough of them."""
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


class Closes(Protocol):
    """What every SDK's client can do."""

    def close(self) -> None:
        """Close the connections."""


Client = TypeVar("Client", bound=Closes)
T = TypeVar("T")


class DeclinedError(Exception):
    """The provider's explicit no, in its own words: neither a failure nor the user's mistake."""


class Gate:
    """Lets a bounded number of calls through at once, and finds out by itself how many the provider takes.

    It begins with `start` places and adds a quarter per round of successes while all are used, nothing is turned away
    and answers come as fast as before. Each call that is turned away takes one place with it, and one burst of them no
    more than half: where a provider takes 16 at once and 24 were sent, 8 are turned away and 16 places are left, which
    from then on is the level, tried one by one beyond. A storm that turns nearly all away leaves the level as it was:
    once it is over, each success brings two places back, until 95 % are there.
    """

    def __init__(self, most: int = 256, start: int | None = None) -> None:
        self.most = most
        self._limit = float(start or most)
        self._level = math.inf
        self._busy = 0
        self._bursts = 0
        self._floor = 1.0
        self._reached = 0.0
        self._turned = 0
        self._successes = 0
        self._not_before = 0.0
        self._usual = self._recent = 0.0
        self._changed = Condition()

    @property
    def limit(self) -> int:
        """The number of calls that may be under way now."""
        return int(self._limit)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for a place and hold it for one call."""
        with self._changed:
            self._changed.wait_for(lambda: self._busy < self.limit)
            self._busy += 1
            burst, full = self._bursts, self._busy >= self.limit
            began = time.monotonic()
        try:
            yield
            with self._changed:
                self._successes += 1
                self._widen(time.monotonic() - began, full)
        except Failed as failed:
            if failed.failure is Failure.RATE_LIMIT:
                with self._changed:
                    self._narrow(burst)
                    self._not_before = max(self._not_before, time.monotonic() + (failed.retry_after or 0.0))
            raise
        finally:
            with self._changed:
                self._busy -= 1
                self._changed.notify_all()

    def rest(self, seconds: float) -> None:
        """Wait before a retry; end early if another call succeeds, but not before the time the provider named."""
        with self._changed:
            before, end = self._successes, time.monotonic() + seconds
            while (now := time.monotonic()) < end:
                passed = self._successes > before
                if passed and now >= self._not_before:
                    return
                self._changed.wait(min(end, self._not_before if passed else end) - now)

    def _widen(self, seconds: float, full: bool) -> None:
        """Raise the limit after a success: fast below the level, by a quarter while it is not known, else by one."""
        if self._limit < NEARLY * self._level and self._level < math.inf:
            step = RECOVERY
        elif self._level == math.inf and self._is_as_fast(seconds):
            step = GROWTH if full else 0.0
        else:
            step = 1 / self._limit
        self._limit = min(float(self.most), self._limit + step)
        if self._limit > BEYOND * self._level:  # more than ever before, and nothing is turned away: look further
            self._level = math.inf

    def _is_as_fast(self, seconds: float) -> bool:
        """Return whether answers are as fast as with fewer calls under way; if not, this is the level."""
        self._recent = seconds if not self._recent else 0.9 * self._recent + 0.1 * seconds
        self._usual = self._recent if not self._usual else min(self._usual, self._recent)
        slow = self._recent > SLOWER * self._usual and self._limit > START
        if slow:
            self._level, self._usual = self._limit, self._recent
        return not slow

    def _narrow(self, burst: int) -> None:
        # From what is really under way: a limit that nobody reaches would have to be lowered many times.
        reached = min(self._limit, self._busy)
        if burst == self._bursts:  # it set out after the last burst had begun: a new one begins
            self._bursts += 1
            self._reached, self._turned = reached, 0
            if self._level == math.inf:
                self._level = reached
            self._floor = max(1.0, reached / 2, self._level * LEAST)
        self._turned += 1
        self._limit = min(self._limit, max(self._floor, reached - 1))
        if self._reached >= NEARLY * self._level:  # near the level, and not amid a recovery
            storm = self._turned >= self._reached / 2
            self._level = max(self._level, self._reached) if storm else max(1.0, self._reached - self._turned)


class Provider(Generic[Client]):
    """A provider's client, made on first use, and every call to it under control."""

    def __init__(self, connect: Callable[[str], Client], *, model: str, key_env: str | None, attempts: int) -> None:
        if key_env is not None and not re.fullmatch(
            r"[A-Z_][A-Z0-9_]*", key_env
        ):  # not echoed: it may be the key itself
            raise EvenEditError(
                "setting 'api_key_env' must be the NAME of an environment variable that holds the API key"
            )
        if attempts < 1:
            raise EvenEditError(f"setting 'attempts' is {attempts}; it must be at least 1")
        self.gate = Gate(start=START)
        self.sleep: Callable[[float], None] = lambda seconds: self.gate.rest(seconds)
        self._connect = connect
        self._model = model
        self._key_env = key_env or ""
        """Empty where no key is asked for."""
        self.attempts = attempts
        self._client: Client | None = None
        self._lock = Lock()

    def call(self, ask: Callable[[Client], T], *, attempts: int | None = None) -> T:
        """Ask the client; retried where that can help. Raises Failed, DeclinedError or EvenEditError."""
        client = self._connected()

        def once() -> T:
            with self.gate.turn(), border(model=self._model, key_env=self._key_env):
                return ask(client)

        return call_with_retries(once, attempts=attempts or self.attempts, sleep=self.sleep)

    def missing(self, module: str) -> list[str]:
        """Return one message for each missing requirement of a call."""
        problems = []
        try:
            importlib.import_module(module)
        except ImportError:
            problems.append(self._needs_extra())
        if not self._key():
            problems.append(self._needs_key())
        return problems

    def _key(self) -> str:
        """Return the key, or a placeholder where none is needed, since the SDKs require one."""
        return os.environ.get(self._key_env, "").strip() if self._key_env else NO_KEY

    def _needs_key(self) -> str:
        return f"model '{self._model}' needs an API key. Try: export {self._key_env}=…"

    def _needs_extra(self) -> str:
        return f"model '{self._model}' needs the 'api' extra. Try: pip install 'evenedit[api]'"

    def _connected(self) -> Client:
        with self._lock:
            if self._client is None:
                key = self._key()
                if not key:
                    raise EvenEditError(self._needs_key())
                try:
                    self._client = self._connect(key)
                except ImportError:
                    raise EvenEditError(self._needs_extra()) from None
                # Before its sockets are collected: a client in a ring of references leaves them open until then.
                weakref.finalize(self, self._client.close)
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
        if not isinstance(error, Failed) or isinstance(error, PendingError) or error.failure not in RETRIED:
            return False
        return error.retry_after is None or error.retry_after <= PATIENCE

    def wait(tried: int, error: BaseException) -> float:
        delay = error.retry_after if isinstance(error, Failed) else None
        # Never earlier than asked, and never all callers at the same moment.
        return draw() * min(LONGEST_WAIT, float(FIRST_WAIT * 2**tried)) + (delay or 0.0)

    return try_again(call, attempts=attempts, helps=helps, wait=wait, sleep=sleep)


@contextmanager
def border(*, model: str, key_env: str) -> Iterator[None]:
    """Translate errors of the SDK and the network into ours; pass on all others."""
    try:
        yield
    except Exception as error:
        translated = _from_status(error, model, key_env) or _from_transport(error, model)
        if translated is None:
            raise
        raise translated from None  # the SDK's error holds the request, and with it the key


def to_png(image: Image.Image) -> bytes:
    """Encode the pixels only: metadata of a stored picture can name a person's labels."""
    if (stored := _stored(image)) is not None and (bare := _bare(stored)) is not None:
        return bare
    buffer = io.BytesIO()
    image.convert("RGB").save(buffer, "PNG")
    return buffer.getvalue()


def _stored(image: Image.Image) -> bytes | None:
    """Return the file of a PNG that was not decoded yet: encoding its pixels would take 50 times as long."""
    file = getattr(image, "fp", None)
    if isinstance(image, PngImageFile) and image.tile and isinstance(file, io.BytesIO):
        return file.getvalue()
    return None


def _bare(png: bytes) -> bytes | None:
    """Return a PNG with nothing but its pixels; None if it is damaged or not plain 8-bit RGB."""
    chunks, at, kind = [png[:8]], 8, b""
    while at < len(png):
        size, kind = int.from_bytes(png[at : at + 4], "big"), png[at + 4 : at + 8]
        chunk = png[at : at + 12 + size]
        if len(chunk) < 12 + size or zlib.crc32(chunk[4:-4]) != int.from_bytes(chunk[-4:], "big"):
            return None
        if kind == b"IHDR" and chunk[16:18] != b"\x08\x02":
            return None
        if kind in (b"IHDR", b"IDAT", b"IEND"):
            chunks.append(chunk)
        at += 12 + size
    return b"".join(chunks) if kind == b"IEND" else None


def to_image(content: bytes | str) -> Image.Image:
    """Decode a returned picture, bytes or base64, in full, so that a truncated one raises now."""
    try:
        if isinstance(content, str):
            content = base64.b64decode(content, validate=True)
        return decode(content)
    except (ValueError, EvenEditError) as error:
        raise Failed(Failure.BAD_IMAGE, f"the returned image cannot be read ({error})") from None


def _from_status(error: Exception, model: str, key_env: str) -> Exception | None:
    """Return our error for a reply with an HTTP error status; None if there was no such reply."""
    status = status_of(error)
    if not isinstance(status, int) or status < 400:
        return None
    body = _body(error)
    # The most specific name: OpenAI's code before its type; Google's code is a number, its name the status.
    name = next((body[k] for k in ("code", "type", "status") if isinstance(body.get(k), str) and body[k]), "")
    message = _safe(str(body.get("message") or "no message"), key_env)
    detail = f"{status} {name}: {message}" if name else f"{status}: {message}"
    if status < 500 and name in DECLINING:
        return DeclinedError(f"{name}: {message}")
    if status == 429 and name == "insufficient_quota":
        return EvenEditError(f"the account behind {key_env} has no credit left; top it up, then run again ({detail})")
    if status == 429:
        return Failed(Failure.RATE_LIMIT, f"rate limit ({detail})", retry_after=_retry_after(error, body))
    if status in (408, 504):
        return Failed(Failure.TIMEOUT, f"the provider timed out ({detail})")
    if status >= 500 or status == 409:  # 409 is OpenAI's "try again"
        return Failed(Failure.SERVER, f"the provider failed ({detail})", retry_after=_retry_after(error, body))
    if rejects_key(error):
        if not key_env:
            return EvenEditError(
                f"model '{model}' has no API key, but its endpoint requires one ({status}); name the variable "
                'that holds it: api_key_env = "NAME"'
            )
        # Without the provider's message: OpenAI's repeats parts of the key.
        return EvenEditError(f"the API key in {key_env} was not accepted for model '{model}' ({status}); check the key")
    if status == 403:
        return EvenEditError(f"the account behind {key_env or 'no key'} may not use model '{model}' ({detail})")
    if status == 404:
        return EvenEditError(f"model '{model}' was not found, or is retired ({detail}); check 'model' and 'base_url'")
    if re.search("invalid_image|image_parse|(input|provided|uploaded) image", f"{name} {message}".lower()):
        return Failed(Failure.BAD_IMAGE, f"the provider could not read the image it was sent ({detail})")
    return EvenEditError(f"model '{model}' did not accept the request ({detail}); check the settings")


def rejects_key(error: Exception) -> bool:
    """Return whether an error of an SDK says that the key is wrong."""
    return status_of(error) == 401 or bool(re.search("API_KEY_INVALID|API key not valid", str(_body(error))))


def status_of(error: Exception) -> Any:
    """Return the HTTP status of an SDK's error; None if it has none."""
    return getattr(error, "status_code", getattr(error, "code", None))


def _from_transport(error: Exception, model: str) -> Failed | None:
    """Return our error for a missing or unreadable reply; None for other errors."""
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
    """Return the error object of either provider; openai unwraps it, google-genai does not."""
    body = getattr(error, "body", None) or getattr(error, "details", None)
    if isinstance(body, Mapping) and isinstance(body.get("error"), Mapping):
        body = body["error"]
    return body if isinstance(body, Mapping) else {}


def _safe(message: str, key_env: str) -> str:
    """Return a provider's message, shortened and without the key, which Google's messages can contain."""
    key = os.environ.get(key_env, "").strip()
    return " ".join((message.replace(key, "<key>") if key else message).split())[:400]


def _retry_after(error: Exception, body: Mapping[str, Any]) -> float | None:
    """Return the seconds to wait: OpenAI has them in a header, as a number or date, Google in the body ("34s")."""
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    details = body.get("details")
    delays = [d.get("retryDelay") for d in details if isinstance(d, Mapping)] if isinstance(details, list) else []
    for text in (str(t) for t in (headers.get("retry-after"), *delays) if t is not None):
        with suppress(ValueError):
            return max(0.0, float(text.removesuffix("s")))
        with suppress(ValueError):
            return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    return None
