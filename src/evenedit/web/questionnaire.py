"""The page after the task on which participants may say something about themselves, and erase it again.

GET  /survey/about    the questions; once answered, what can be erased
POST /survey/about    form: decision=send|skip|erase, agreed=yes, sensitive=yes, one field per question -> 303
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from evenedit.config.study_file import SurveySection
from evenedit.protocol.questionnaire import ProfileQuestion, places
from evenedit.survey.consent import ConsentText
from evenedit.survey.languages import Texts
from evenedit.survey.questionnaire import (
    WITHHELD,
    erase_profile,
    has_profile,
    is_asked,
    keep_profile,
    page_questions,
    unknown_answers,
)
from evenedit.survey.visits import Visit
from evenedit.web.errors import HttpProblem
from evenedit.web.survey import ERRORS
from evenedit.web.visitor import (
    ABOUT,
    Present,
    known_visit,
    language_here,
    on_to,
    refusals_shown,
    section_of,
    service,
    survey_page,
    texts_here,
)

LONGEST = 100
DECISIONS = ("send", "skip", "erase")


def router() -> APIRouter:
    """Return the routes of the page."""
    routes = APIRouter(tags=["pages"], default_response_class=HTMLResponse, responses=ERRORS)
    routes.get(ABOUT)(about_page)
    routes.post(ABOUT)(about)
    return routes


def about_page(request: Request) -> Response:
    """Ask, or show what can be erased; anybody else is sent to the stage they are at."""
    visit = known_visit(request)
    if visit is None:
        return RedirectResponse("/survey", 303)
    if is_asked(service(request).database, section_of(request), visit.token):
        return _form(request, visit, {})
    if has_profile(service(request).database, visit.token):
        return survey_page(request, "about", visit, erase=True)
    return on_to(visit)


async def about(request: Request, visit: Present) -> Response:
    """Store the answers of somebody who agreed, or that they go on without; or erase what is stored."""
    form: dict[str, str] = {}
    for name, value in (await request.form()).multi_items():
        form[name] = str(value)[:LONGEST] or form.get(name, "")  # "prefer not to say" comes after an empty field
    return await run_in_threadpool(_decide, request, visit, form)


def _decide(request: Request, visit: Visit, form: Mapping[str, str]) -> Response:
    database, section, now = service(request).database, section_of(request), service(request).clock()
    decision = form.get("decision", "")
    if decision not in DECISIONS:
        raise HttpProblem(422, fields=["decision"])
    if decision == "erase":
        with refusals_shown(request, 409):
            erase_profile(database, visit.token, now)
        return RedirectResponse("/survey/done", 303)
    agreed = decision == "send" and form.get("agreed") == "yes"
    if decision == "send" and (problem := _problem(request, form, agreed)):
        return _form(request, visit, form, problem, 422)
    with refusals_shown(request, 409):
        keep_profile(
            *(database, section, visit.token, form, _consent(request), now),
            agreed=agreed,
            sensitive=form.get("sensitive") == "yes",
        )
    return RedirectResponse("/survey/done", 303)


def _problem(request: Request, form: Mapping[str, str], agreed: bool) -> str:
    """Return what must be corrected before answers are stored; empty for a valid form."""
    questions, w = page_questions(section_of(request)), texts_here(request)["about"]
    if not agreed:
        return str(w["missing"])
    if wrong := unknown_answers(questions, form):
        return str(w["wrong"]).format(fields=", ".join(_field(w, q) for q in wrong))
    sensitive = any(q.sensitive and form.get(q.id, "") not in ("", WITHHELD) for q in questions)
    return str(w["sensitive_missing"]) if sensitive and form.get("sensitive") != "yes" else ""


def _form(request: Request, visit: Visit, form: Mapping[str, str], problem: str = "", status: int = 200) -> Response:
    section, w = section_of(request), texts_here(request)["about"]
    questions = page_questions(section)
    return survey_page(
        request,
        "about",
        visit,
        status=status,
        rows=[_row(section, w, language_here(request), q) for q in questions],
        given=form,
        problem=problem,
        withheld=WITHHELD,
        sensitive=_sensitive(w, questions),
    )


def _sensitive(w: Texts, questions: Sequence[ProfileQuestion]) -> str:
    """Return the sentence of the second consent; empty if no question needs it."""
    fields = [_field(w, q) for q in questions if q.sensitive]
    return str(w["sensitive_agreed"]).format(fields=", ".join(fields)) if fields else ""


def _consent(request: Request) -> ConsentText:
    """Return the text of the consent."""
    w = texts_here(request)["about"]
    sentences = [w["kept"], w["agreed"], _sensitive(w, page_questions(section_of(request)))]
    return ConsentText(language_here(request), "\n\n".join(filter(None, sentences)))


def _field(w: Texts, question: ProfileQuestion) -> str:
    """Return the short name of a question."""
    return str(w["fields"].get(question.id, question.title))


def _row(section: SurveySection, w: Texts, language: str, question: ProfileQuestion) -> dict[str, Any]:
    """Return a question as the page shows it: values are stored, labels are displayed."""
    row: dict[str, Any] = {"id": question.id, "kind": question.kind}
    stated = section.questionnaire.questions if section.questionnaire else []
    custom = next((q for q in stated if q.id == question.id), None)
    if custom:
        translated = custom.translations.get(language)
        labels = translated.options if translated else custom.options
        return row | {"text": translated.text if translated else custom.text, "options": _pairs(custom.options, labels)}
    row["text"] = w["questions"][question.id]
    if question.kind in ("country", "language"):
        names = places()["countries" if question.kind == "country" else "languages"]
        return row | {"options": [{"value": name, "label": name, "code": code} for code, name in names.items()]}
    return row | {"options": _pairs(question.options, [w["options"].get(o, o) for o in question.options])}


def _pairs(values: Sequence[str], labels: Sequence[str]) -> list[dict[str, str]]:
    return [{"value": value, "label": label, "code": ""} for value, label in zip(values, labels, strict=True)]
