"""Any service over HTTP as an editor: what is sent, and where the picture is in the answer, stand in the study file.

    submit  ─▶  the picture, or a job  ─▶  poll until it is done  ─▶  the picture, by URL, base64 or as the body

What fails is tried again from there: what was submitted once is followed up, in this run or the next (`SubmittedJob`).
Errors of polling and downloading concern one edit. Of those of submitting, only what is certain to repeat (a wrong key,
an unknown model) stops the editor.

What counts as a refusal: the service says so by a status of a job, by a code of an error, or by a flag in the answer,
each of which the settings (or the preset) name. Words in the place that `text` names, without a picture, are the
outcome `no_image`. Everything else that brings no picture is a failure.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
from PIL.Image import Image

from evenedit.core import settings
from evenedit.core.errors import EvenEditError, Failed, Failure
from evenedit.core.hashing import digest
from evenedit.core.interfaces import NoImage, Output, Refusal
from evenedit.core.retry import try_again
from evenedit.core.settings import InheritsSettings
from evenedit.core.submissions import JobLostError, PendingError, SubmissionState, SubmittedJob
from evenedit.editors.api.template import LEFT_OUT, at, filled, places, used
from evenedit.providers.calls import DeclinedError, Provider, to_image, to_png
from evenedit.providers.messages import join_messages

POLL = {"url", "status", "done", "failed", "every", "result", "error"}
REFUSAL = {"statuses", "words", "flags"}
WHILE_WAITING = 100_000
"""Most looks at one job; the time limit ends it before."""
UNANSWERED = frozenset({408, 502, 504})
"""Statuses of a gateway that leave open whether the service took the request."""
OF_THE_REQUEST = frozenset({400, 413, 415, 422})
"""Statuses by which a service does not take this request; another one may do."""
PASSING = frozenset({401, 408, 425, 429, *range(500, 600)})
"""Statuses that say nothing about one job."""
NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class HttpError(Exception):
    """An answer with an error status, as the border between us and providers reads it."""

    def __init__(self, response: httpx.Response) -> None:
        super().__init__(f"{response.status_code}")
        self.status_code = response.status_code
        self.response = response
        try:
            content = response.json()
        except ValueError:
            content = {}
        self.body = _error_of(content)


class JobFailedError(Failed):
    """A job that ended without a picture: what is tried next is another submission."""


class HttpEditor(InheritsSettings):
    """Edits by requests to a URL."""

    remote = True
    submits = True
    """What it sends is recorded before: its `edit` takes a `SubmittedJob`."""
    added_settings = frozenset({"text"})

    def __init__(
        self,
        *,
        url: str,
        model: str = "",
        headers: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        form: Mapping[str, Any] | None = None,
        path: str | None = None,
        upload: Mapping[str, Any] | None = None,
        picture: str = "",
        text: str = "",
        poll: Mapping[str, Any] | None = None,
        refusal: Mapping[str, Any] | None = None,
        api_key_env: str | None = None,
        timeout: float = 180.0,
        attempts: int = 5,
        max_images: int = 1,
    ) -> None:
        self.url = settings.text("url", url)
        self.model = model
        """The name by which it is priced, and the place {model}."""
        self.headers = settings.table("headers", headers)
        """Sent with every request; {key} is the secret in `api_key_env`."""
        self.body = settings.table("body", body)
        """What is sent as JSON."""
        self.form = settings.table("form", form)
        """What is sent as multipart fields; {image} and {image2} are files there."""
        self.path = path
        """A JSON file that is the place {workflow}."""
        self.upload = settings.table("upload", upload)
        """Pictures sent before: url, form, and name, where the answer says what the service calls them."""
        self.picture = picture
        """Where the picture is in the answer, such as images.0.url; empty: the answer is the picture."""
        self.text = text
        """Where the service's words are in an answer without a picture, such as choices.0.message.content."""
        self.poll = _known("poll", settings.table("poll", poll), POLL)
        """How a job is followed: url, status, done, failed, every, result, error."""
        self.refusal = _known("refusal", settings.table("refusal", refusal), REFUSAL)
        """What is a refusal: statuses of a job, words that are codes of errors, flags in the answer."""
        self.timeout = settings.number("timeout", timeout)
        """Seconds for one edit, waiting in a queue included."""
        self.max_images = settings.count("max_images", max_images)
        """The number of input images it takes at most."""
        if bool(self.body) == bool(self.form):
            raise EvenEditError("set either 'body' (JSON) or 'form' (multipart), not both")
        self._workflow = self._read_workflow()
        places_used = used(self.body) | used(self.form) | used(self._workflow)
        if "instruction" not in places_used:
            raise EvenEditError("the request has no placeholder {instruction}")
        self.seed_sent = "seed" in places_used
        self.repeatable = "submission" in places_used | used(self.headers)
        """Whether the service gets an id of each submission, by which it knows one that is sent again."""
        self.provider = Provider(
            self.connect, model=model or urlsplit(url).netloc, key_env=api_key_env or None, attempts=attempts
        )
        self.api_key_env = api_key_env
        self.pause: Callable[[float], None] = time.sleep
        """Waits between two looks at a job."""

    def connect(self, key: str) -> httpx.Client:
        """Return a client; only requests to the service itself carry the secret."""
        self._key = key
        return httpx.Client(timeout=self.timeout, follow_redirects=False)

    def missing(self) -> list[str]:
        """Return one message for each missing requirement."""
        if self.api_key_env is None or os.environ.get(self.api_key_env, "").strip():
            return []
        return [f"it needs a key. Try: export {self.api_key_env}=…"]

    def facts(self) -> dict[str, Any]:
        """Return what was sent: the model, whether a seed, and which workflow."""
        sent = {"url": self.url, "model": self.model, "seed_sent": self.seed_sent}
        return {**sent, "workflow": digest(self._workflow)} if self._workflow else sent

    def edit(
        self, images: Sequence[Image], instruction: str, seed: int, submission: SubmittedJob | None = None
    ) -> Output:
        """Return the edited picture, the service's refusal with its reason, or its words."""
        if len(images) > self.max_images:
            raise EvenEditError(f"this service takes {self.max_images} image(s), but the request has {len(images)}")
        pictures = [to_png(image) for image in images]
        job = submission or SubmittedJob()
        try:
            return self.provider.call(lambda client: self._edit(client, pictures, instruction, seed, job))
        except DeclinedError as declined:
            return Refusal(str(declined))
        except JobLostError:
            job.end(SubmissionState.LOST)
            raise
        except PendingError:
            if job.is_old:
                job.end(SubmissionState.LOST)
            raise

    # -- one edit ------------------------------------------------------------------------------------------

    def _edit(
        self, client: httpx.Client, pictures: Sequence[bytes], instruction: str, seed: int, job: SubmittedJob
    ) -> Output:
        """Submit the edit unless that is done, and return its result."""
        until = time.monotonic() + self.timeout
        uploaded = self.upload if job.answer is None else {}
        names = [self._uploaded(client, picture) for picture in pictures] if uploaded else []
        values = places(pictures, instruction, seed, names, model=self.model)
        if job.answer is None:
            job.accept(self._submitted(client, values, pictures, job))
        answer = job.answer
        try:
            answer = self._waited(client, answer, values, until) if self.poll else answer
            for flag in self.refusal.get("flags", ()):
                if at(answer, flag):
                    return Refusal(f"{flag} is {json.dumps(at(answer, flag))}")
            return self._picture(client, answer, values)
        except JobFailedError:
            job.end(SubmissionState.FAILED)
            raise

    def _submitted(
        self, client: httpx.Client, values: dict[str, Any], pictures: Sequence[bytes], job: SubmittedJob
    ) -> Any:
        """Send the request and return the answer; record what is known of it otherwise."""
        values["workflow"] = filled(self._workflow, values) if self._workflow else LEFT_OUT
        values["submission"] = job.begin(repeatable=self.repeatable)
        try:
            return self._read(self._sent(client, values, pictures))
        except HttpError as error:
            if error.status_code not in UNANSWERED:
                job.end(SubmissionState.REJECTED)
            if error.status_code in OF_THE_REQUEST:
                reply_words = error.body.get("message") or error.response.text[:300]
                reason = f"the service did not take the request ({error}: {reply_words})"
                raise Failed(Failure.REJECTED, reason) from None
            raise
        except NEVER_SENT:
            job.end(SubmissionState.REJECTED)
            raise
        except httpx.TimeoutException:
            raise PendingError(Failure.TIMEOUT, "the service did not answer in time") from None

    def _uploaded(self, client: httpx.Client, picture: bytes) -> str:
        answer = self._read(self._posted(client, str(self.upload["url"]), self.upload.get("form", {}), [picture], {}))
        name = at(answer, str(self.upload.get("name", "name")))
        if not isinstance(name, str):
            raise Failed(Failure.SERVER, f"the answer to the upload has no file: {_short(answer)}")
        return name

    def _sent(self, client: httpx.Client, values: Mapping[str, Any], pictures: Sequence[bytes]) -> httpx.Response:
        if self.form:
            return self._posted(client, self.url, self.form, pictures, values)
        url, body = str(filled(self.url, values)), filled(self.body, values)
        return self._ask(client, "POST", url, submission=values["submission"], json=body)

    def _posted(
        self,
        client: httpx.Client,
        url: str,
        form: Mapping[str, Any],
        pictures: Sequence[bytes],
        values: Mapping[str, Any],
    ) -> httpx.Response:
        """Send a multipart request: {image} and {image2} are files, all else is text."""
        files: list[tuple[str, Any]] = []
        for name, value in form.items():
            match = re.fullmatch(r"\{image(2?)\}", value) if isinstance(value, str) else None
            if match is None:
                text = filled(value, values)
                if text is not LEFT_OUT:
                    files.append((name, (None, str(text))))
            elif len(pictures) > bool(match[1]):
                number = 1 + bool(match[1])
                files.append(
                    (
                        name,
                        (f"image{number}-{digest(pictures[number - 1].hex())}.png", pictures[number - 1], "image/png"),
                    )
                )
        submission = values.get("submission", "")
        return self._ask(client, "POST", str(filled(url, values)), submission=submission, files=files)

    def _waited(self, client: httpx.Client, job: Any, values: Mapping[str, Any], until: float) -> Any:
        """Return the job's last answer; raise if it failed, was refused or takes too long."""
        known = {**values, **({"id": at(job, "id")} if at(job, "id") is not None else {})}
        known |= {name: value for name, value in job.items() if isinstance(value, str)} if isinstance(job, dict) else {}
        stated = str(self.poll.get("url", ""))
        url = str(filled(stated, known)) if "{" in stated else str(at(job, stated) or "")
        if not url.startswith("http"):
            raise JobFailedError(Failure.REJECTED, f"the answer has no job to poll: {_short(job)}")
        for _ in range(WHILE_WAITING):
            answer = self._poll(client, url, until)
            status = at(answer, str(self.poll.get("status", "status")))
            reason = at(answer, str(self.poll["error"])) if "error" in self.poll else None
            if status in self.refusal.get("statuses", ()):
                raise DeclinedError(join_messages(str(status), reason))
            if status in self.poll.get("done", ()):
                where = self.poll.get("result")
                if not where:
                    return answer
                with _of_one_job(PASSING - {500}):
                    return self._read(self._ask(client, "GET", str(at(answer, where) or at(job, where))))
            if status in self.poll.get("failed", ()):
                self._decline_by_words(join_messages(str(status), reason))
                raise JobFailedError(Failure.SERVER, f"the job ended with {join_messages(str(status), reason)}")
            if time.monotonic() > until:
                break
            self.pause(float(self.poll.get("every", 1.0)))
        raise PendingError(
            Failure.TIMEOUT,
            f"the job is not done within {self.timeout:g} s (last status: {status}); the next run looks again",
        )

    def _poll(self, client: httpx.Client, url: str, until: float) -> Any:
        """Return the state of a job; look again where the answer is none."""
        while True:
            try:
                with _of_one_job(PASSING):
                    return self._read(self._ask(client, "GET", url))
            except (HttpError, httpx.TransportError, Failed) as error:
                if isinstance(error, JobLostError):
                    raise
                if time.monotonic() > until:
                    raise PendingError(Failure.TIMEOUT, f"the job could not be looked at: {error!r}") from None
            self.pause(float(self.poll.get("every", 1.0)))

    def _picture(self, client: httpx.Client, answer: Any, values: Mapping[str, Any]) -> Image | NoImage:
        if isinstance(answer, bytes):
            return to_image(answer)
        if "{" in self.picture:  # a URL made of what stands in the answer
            place: Any = _from_places(self.picture, answer, values)
        else:
            place = at(answer, self.picture)
        if isinstance(place, list) and place:
            place = place[0]
        words = at(answer, self.text) if self.text else None
        if not place and isinstance(words, str) and words.strip():
            return NoImage(words.strip())
        if not isinstance(place, str) or not place:
            raise JobFailedError(Failure.BAD_IMAGE, f"no picture at '{self.picture}' in the answer: {_short(answer)}")
        if place.startswith("data:"):
            return to_image(place.partition(",")[2])
        if not place.startswith("http"):
            return to_image(place)
        return try_again(
            lambda: _downloaded(client, place),
            attempts=self.provider.attempts,
            helps=lambda error: isinstance(error, Failed) and error.failure is Failure.BAD_IMAGE,
            wait=lambda *_: float(self.poll.get("every", 1.0)),
            sleep=self.pause,
        )

    # -- requests ------------------------------------------------------------------------------------------

    def _ask(self, client: httpx.Client, method: str, url: str, submission: str = "", **content: Any) -> httpx.Response:
        response = client.request(method, url, headers=self._headers(url, submission), **content)
        if response.status_code >= 400:
            self._decline_by_words(response.text)
            raise HttpError(response)
        return response

    def _headers(self, url: str, submission: str = "") -> dict[str, str]:
        """Return the headers, with the secret only for requests to the service itself."""
        is_service = _domain(url) == _domain(self.url)
        return {
            name: str(value).replace("{key}", self._key).replace("{submission}", submission)
            for name, value in self.headers.items()
            if is_service or "{key}" not in str(value)
        }

    def _decline_by_words(self, text: str) -> None:
        for word in self.refusal.get("words", ()):
            if word.lower() in text.lower():
                raise DeclinedError(join_messages(word, _error_of(_parsed(text)).get("message") or text))

    def _read(self, response: httpx.Response) -> Any:
        if response.headers.get("content-type", "").startswith("image/"):
            return response.content
        try:
            return response.json()
        except ValueError:
            raise Failed(
                Failure.SERVER, "the answer is neither JSON nor a picture; check 'url' if this persists"
            ) from None

    def _read_workflow(self) -> Any:
        if self.path is None:
            if "workflow" in used(self.body):
                raise EvenEditError("the request has a placeholder {workflow}; set 'path' to its file")
            return None
        try:
            return json.loads(Path(self.path).read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise EvenEditError(f"the workflow {self.path} cannot be read: {error}") from None


@contextmanager
def _of_one_job(passing: Container[int]) -> Iterator[None]:
    """Turn error statuses of a job that was submitted into failures of its edit: they do not stop the editor."""
    try:
        yield
    except HttpError as error:
        if error.status_code == 401:
            raise Failed(Failure.SERVER, "the service does not accept the key any more (401)") from None
        if error.status_code in passing:
            raise
        reply_words = error.body.get("message") or error.response.text[:300]
        raise JobLostError(Failure.SERVER, f"the service has no result of this job ({error}: {reply_words})") from None


def _downloaded(client: httpx.Client, url: str) -> Image:
    """Fetch a picture, without the key: the address is another machine's."""
    with _of_one_job(PASSING):
        response = client.get(url, follow_redirects=True)
        if response.status_code >= 400:
            raise HttpError(response)
    return to_image(response.content)


def _known(name: str, values: dict[str, Any], allowed: set[str]) -> dict[str, Any]:
    unknown = sorted(values.keys() - allowed)
    if unknown:
        raise EvenEditError(f"setting '{name}' has {', '.join(unknown)}; it takes: {', '.join(sorted(allowed))}")
    return values


def _from_places(template: str, answer: Any, values: Mapping[str, Any]) -> str | None:
    """Return a URL whose places are filled from the answer or from known values; None if one is missing."""
    missing = False

    def value(place: re.Match[str]) -> str:
        nonlocal missing
        entry = at(answer, place[1])
        entry = values.get(place[1]) if entry is None else entry
        missing = missing or entry is None
        return quote(str(entry))

    url = re.sub(r"\{([^{}]+)\}", value, template)
    return None if missing else url


def _error_of(content: Any) -> dict[str, Any]:
    """Return code and message of an error, in the shapes that services use."""
    body = content.get("error", content) if isinstance(content, Mapping) else {}
    if isinstance(body, str):
        return {"message": body}
    detail = body.get("detail") if isinstance(body, Mapping) else None
    if isinstance(detail, list) and detail and isinstance(detail[0], Mapping):
        return {"code": str(detail[0].get("type", "")), "message": str(detail[0].get("msg", ""))}
    if isinstance(detail, str):
        return {"message": detail, **({"code": body["code"]} if isinstance(body.get("code"), str) else {})}
    return dict(body) if isinstance(body, Mapping) else {}


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return {}


def _domain(url: str) -> str:
    """Return a service's domain: its machines differ only in the region before it."""
    host = urlsplit(url).hostname or ""
    return host if re.fullmatch(r"[\d.:]+|localhost", host) else ".".join(host.split(".")[-2:])


def _short(answer: Any) -> str:
    return json.dumps(answer, default=str)[:300]
