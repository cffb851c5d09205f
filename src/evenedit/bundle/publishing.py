"""A bundle as a static site: report, a page per case, filters, downloads. It needs no server of its own."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from evenedit.bundle.archive import SealedZip, bundled_results, open_bundle
from evenedit.bundle.evidence import Evidence, RawReply
from evenedit.bundle.evidence_files import read_evidence
from evenedit.core.errors import EvenEditError
from evenedit.core.records import Kind, Request
from evenedit.core.version import __version__
from evenedit.judges.parsing import evidence_of
from evenedit.judges.raters import Call
from evenedit.report.figures.photo_figure import PHOTO_FIGURES
from evenedit.report.render.html import PALETTE, TEMPLATES, put, render
from evenedit.report.render.index import level_name
from evenedit.report.text.findings import scope
from evenedit.reporting.case_pages import NAME
from evenedit.results.finding import EFFECT_LEVELS, Finding
from evenedit.results.results import Results

PictureRule = Literal["show", "blur", "withhold"]
FIRST = 5
"""Findings on the front page."""
PER_PAGE = 500
"""Cases on a page of the list."""
DOWNLOADS = (
    "results.json",
    "ratings.csv.gz",
    "croissant.json",
    "ro-crate-metadata.json",
    "study.toml",
    "licences.json",
)
ROBOTS = "User-agent: *\nDisallow: /\n"
SOURCE, OUTPUT = "Source portrait", "Edit by"
"""How the descriptions of pictures begin, by their class."""
PHOTOS = ".photos img"
"""Figures made of several pictures, of both classes."""
IMAGE = re.compile(r"<img\b[^>]*>")
DATA = re.compile(r'(<script type="application/json" id="data">)(.*?)(</script>)', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Site:
    """A site that was written."""

    page: Path
    cases: int
    files: int
    size: int


@dataclass(frozen=True, slots=True)
class PicturePolicy:
    """What is done with each class of pictures."""

    portraits: PictureRule = "show"
    outputs: PictureRule = "show"

    def of(self, alt: str) -> PictureRule:
        """Return the rule for a picture by its description; a picture of both classes takes the stricter rule."""
        if alt.startswith(SOURCE):
            return self.portraits
        if alt.startswith(OUTPUT):
            return self.outputs
        return max(self.portraits, self.outputs, key=("show", "blur", "withhold").index)

    @property
    def style(self) -> str:
        """The style that blurs what is to be blurred; a picture is sharp while it is pointed at or focused."""
        classes = ((SOURCE, self.portraits), (OUTPUT, self.outputs))
        blurred = [f'img[alt^="{start}"]' for start, policy in classes if policy == "blur"]
        blurred += [PHOTOS] if blurred else []
        return "".join(
            f"{which}:not(:hover) {{ filter: blur(14px); }}\n:is(a, button):focus {which} {{ filter: none; }}\n"
            for which in blurred
        )

    def in_words(self, pictures: str) -> str:
        """Describe which pictures are published."""
        if pictures == "none":
            return "No picture is shown; digests of all are in the bundle."
        words = {"show": "shown", "blur": "blurred until pointed at", "withhold": "withheld"}
        return f"Portraits are {words[self.portraits]}, outputs are {words[self.outputs]}."


def publish(path: Path, out: Path, policy: PicturePolicy | None = None, contact: str = "") -> Site:
    """Write the site of a bundle into a new folder; the bundle is verified first."""
    if out.exists() and any(out.iterdir()):
        raise EvenEditError(f"{out} is not empty; name a new folder")
    policy = policy or PicturePolicy()
    bundle = open_bundle(path)
    evidence, results = read_evidence(bundle), bundled_results(bundle)
    withheld = set(_withheld(evidence, policy))
    for name, content in bundle.contents(bundle.under("report")):
        if Path(name).stem not in withheld and not (name.startswith("report/figures/") and _is_photo(name, policy)):
            put(out / name, _page(content.decode(), policy, withheld).encode() if name.endswith(".html") else content)
    known = {Path(name).stem for name in bundle.under("report/pictures")}
    pictures = known - withheld
    cases = list(_cases(evidence, pictures))
    for page, text in _case_pages(cases, results):
        put(out / "cases" / page, text.encode())
    _put_front(bundle, out, evidence, results, policy, contact)
    files = [p for p in out.rglob("*") if p.is_file()]
    return Site(out / "index.html", len(cases), len(files), sum(p.stat().st_size for p in files))


def _put_front(
    bundle: SealedZip, out: Path, evidence: Evidence, results: Results, policy: PicturePolicy, contact: str
) -> None:
    """Write the first page, the pages it links to, and robots.txt."""
    licences = json.loads(bundle.read("licences.json"))
    licence, title = str(licences["portraits"]["licence"]), str(bundle.facts.get("title", ""))
    contents = {name: bundle.read(name) for name in DOWNLOADS if name in bundle.names}
    pictured = bundle.facts.get("pictures", "none")
    if "withhold" not in (policy.portraits, policy.outputs):
        contents = {bundle.path.name: bundle.path.read_bytes(), **contents}
    for name, content in contents.items():
        put(out / "downloads" / name, content)
    sizes = [(name, f"{len(content) / 1e6:,.1f} MB") for name, content in contents.items()]
    common = {"simulated": bool(results.simulated), "up": "", "study": title, "licence": licence}
    front = render(
        "site.html",
        **common,
        title=title,
        editors=list(results.editors),
        edits=len(evidence.edits),
        portraits=len(evidence.sources),
        version=bundle.facts.get("evenedit", __version__),
        root=bundle.root,
        bundle=bundle.path.name,
        downloads=sizes,
        findings=_worst(results),
        shown=policy.in_words(str(pictured)),
    )
    recall = str(licences["consent"].get("published_from", ""))
    put(out / "takedown.html", render("site_takedown.html", **common, contact=contact, recall=recall).encode())
    put(out / "robots.txt", ROBOTS.encode())
    sheets = [PALETTE, TEMPLATES / "report.css", TEMPLATES / "site.css"]
    style = "\n".join([*(sheet.read_text("utf-8") for sheet in sheets), policy.style])
    put(out / "site.css", style.encode())
    put(out / "index.html", front.encode())


def _worst(results: Results) -> list[tuple[int, str, str, Finding]]:
    """Return the worst clear or suggestive findings, each with the number of its page, level and scope."""
    numbered = enumerate(results.findings, 1)
    worst = [(n, f) for n, f in numbered if f.level in EFFECT_LEVELS][:FIRST]
    return [(n, level_name(f.level, f.evidence).capitalize(), scope(f), f) for n, f in worst]


def _withheld(evidence: Evidence, policy: PicturePolicy) -> Iterator[str]:
    """Return the names of pictures that are not published."""
    if policy.portraits == "withhold":
        yield from (source.image[:NAME] for source in evidence.sources.values())
    if policy.outputs == "withhold":
        yield from (edit.image[:NAME] for edit in evidence.edits.values() if edit.image)


def _is_photo(name: str, policy: PicturePolicy) -> bool:
    """Return whether a figure consists of photographs that are not published."""
    return "withhold" in (policy.portraits, policy.outputs) and Path(name).stem in PHOTO_FIGURES


def _page(text: str, policy: PicturePolicy, withheld: set[str]) -> str:
    """Return a page of the report for the site: pictures by policy, cases linked to their pages."""

    def image(match: re.Match[str]) -> str:
        alt = re.search(r'alt="([^"]*)"', match[0])
        return (
            '<span class="n">[picture withheld]</span>' if policy.of(alt[1] if alt else "") == "withhold" else match[0]
        )

    def data(match: re.Match[str]) -> str:
        body = json.loads(match[2])
        body["outputs"] = ["" if name in withheld else name for name in body["outputs"]]
        body["portraits"] = {k: [n for n in names if n not in withheld] for k, names in body["portraits"].items()}
        filtered = (
            json.dumps(body, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/").replace("<!", "<\\u0021")
        )
        return match[1] + filtered + match[3]

    text = IMAGE.sub(image, text)
    if withheld:
        text = DATA.sub(data, text)
    text = text.replace("<body data-pictures=", '<body data-pages="../cases" data-pictures=')
    return text.replace("</style>", f"{policy.style}</style>", 1) if policy.style else text


@dataclass(frozen=True, slots=True)
class CasePage:
    """What the page of one case shows."""

    id: str
    prompt: str
    portrait: str
    editor: str
    instruction: str
    pictures: Sequence[tuple[str, str, str]]
    """Address, description and caption of each."""
    facts: Sequence[tuple[str, str]]
    replies: Sequence[Mapping[str, str]]
    before: str = ""
    after: str = ""


def _cases(evidence: Evidence, pictures: set[str]) -> Iterator[CasePage]:
    requests = [request for request in evidence.requests if request.id in evidence.edits]
    by_request: dict[str, list[RawReply]] = {}
    for reply in evidence.replies:
        by_request.setdefault(reply.request_id, []).append(reply)
    for at, request in enumerate(requests):
        edit = evidence.edits[request.id]
        images = [(evidence.sources[s].image, SOURCE, SOURCE) for s in request.source_ids]
        made_by = f"{OUTPUT} {request.editor}"
        images += [(edit.image, f"{made_by} for: {request.instruction}", made_by)] if edit.image else []
        yield CasePage(
            id=request.id,
            prompt=request.prompt_id,
            portrait=" + ".join(request.source_ids),
            editor=request.editor,
            instruction=request.instruction,
            pictures=[(f"../report/pictures/{n[:NAME]}.webp", a, c) for n, a, c in images if n[:NAME] in pictures],
            facts=list(_facts(evidence, request, edit.outcome, edit.image or "")),
            replies=[_reply(evidence, reply) for reply in by_request.get(request.id, []) if reply.order not in SEEN],
            before=requests[at - 1].id if at else "",
            after=requests[at + 1].id if at + 1 < len(requests) else "",
        )


def _facts(evidence: Evidence, request: Request, outcome: str, image: str) -> Iterator[tuple[str, str]]:
    yield "Editor", request.editor
    yield "Experiment", f"{request.experiment}, {request.condition}"
    labels = evidence.sources[request.source_ids[0]].attributes if len(request.source_ids) == 1 else {}
    for factor in evidence.record.factors:
        if labels.get(factor.name):
            yield f"Labelled {factor.title or factor.name}", labels[factor.name]
    yield "Seed", str(request.seed)
    yield "Outcome", outcome
    if image:
        yield "SHA-256 of the output", image


SEEN = (Call.SEE, Call.REREAD)
"""How a person is seen is shown in counts, never of one person."""


def _reply(evidence: Evidence, reply: RawReply) -> dict[str, str]:
    """Return a rater's answers about a case in one line, and the raw reply."""
    title = evidence.rubric.title
    answers = [f"{title(q)} {v}" for q, v in evidence.answers(reply).items() if v is not None]
    words, _ = evidence_of(reply.raw) if reply.kind is Kind.VLM and not reply.order else ("", {})
    order = f" (two outputs, order {reply.order})" if reply.order in (Call.BASELINE_FIRST, Call.BASELINE_LAST) else ""
    answer = ", ".join(answers) or f"{reply.status}{f': {reply.reason}' if reply.reason else ''}"
    return {"rater": reply.rater + order, "said": f"{answer}. {words}".strip(), "raw": reply.raw}


def _case_pages(cases: Sequence[CasePage], results: Results) -> Iterator[tuple[str, str]]:
    """Yield a page for each case, and the pages of their list."""
    common: dict[str, Any] = {"simulated": bool(results.simulated), "up": "../", "study": results.title}
    for case in cases:
        yield f"{case.id}.html", render("site_case.html", **common, case=case)
    starts = list(range(0, len(cases), PER_PAGE)) or [0]
    names = ["index.html" if not at else f"page-{at // PER_PAGE + 1}.html" for at in starts]
    pages = [(name, str(number)) for number, name in enumerate(names, 1)]
    for at, (name, number) in zip(starts, pages, strict=True):
        part = cases[at : at + PER_PAGE]
        listed = [(c.id, f"{c.portrait}, {c.prompt}, {c.editor}") for c in part]
        text = render(
            "site_cases.html",
            **common,
            cases=listed,
            pages=pages,
            here=number,
            first=at + 1 if part else 0,
            last=at + len(part),
            total=len(cases),
        )
        yield name, text
