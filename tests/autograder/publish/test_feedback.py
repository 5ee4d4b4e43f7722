from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from autograder.base import cleaning
from autograder.base.course import Course
from autograder.base.markdown import markdown_to_html
from autograder.model.lateness import ON_TIME, Lateness
from autograder.model.manual_grades import NO_MANUAL_GRADES, ManualGrades
from autograder.model.note import Note
from autograder.model.result import Result
from autograder.model.status import NEEDS
from autograder.model.task import Status, Verdict
from autograder.publish import feedback_cells
from autograder.publish.feedback import feedback_html, shows, write_feedback
from autograder.store.out_folder import OutFolder
from tests.autograder.small_class import (
    DOUBLE,
    EXPLAIN,
    HALVE,
    PNG,
    end_of,
    graded,
    make_course,
    verdict,
)
from tests.autograder.small_release import LAB, code, markdown, own, solved

PWN = "document.documentElement.dataset.pwned = 1; alert(1)"
FETCH = "http://127.0.0.1:9/"

# Each line would run code, or fetch something, in a page that shows it unescaped.
HOSTILE_HTML = f"""
<script>{PWN}</script>
<img src=x onerror="{PWN}">
<svg onload="{PWN}"><script>{PWN}</script><image href="{FETCH}svg"/></svg>
<iframe srcdoc="<script>parent.{PWN}</script>"></iframe>
<iframe src="javascript:parent.{PWN}"></iframe>
<object data="{FETCH}object"></object><embed src="{FETCH}embed">
<link rel="stylesheet" href="{FETCH}css">
<style>@import "{FETCH}import"; body {{ display: none }}</style>
<div style="position:fixed;inset:0;background:url({FETCH}background)">4 of 4 points</div>
<video src="{FETCH}video" onerror="{PWN}"></video><audio src="{FETCH}audio"></audio>
<details open ontoggle="{PWN}"><summary>s</summary></details>
<form action="{FETCH}form"><button formaction="javascript:{PWN}" class="press">go</button></form>
<a href="javascript:{PWN}" class="press">a</a> <a href="&#106;avascript:{PWN}" class="press">b</a>
<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror={PWN}&gt;">
<math href="javascript:{PWN}"><mi href="javascript:{PWN}">c</mi></math>
<template><script>{PWN}</script></template><base href="{FETCH}base/">
<input autofocus onfocus="{PWN}"><b id="lab05-double" class="mark right">4 of 4 points</b>
"""
HOSTILE_MARKDOWN = (
    HOSTILE_HTML
    + f"""

![picture]({FETCH}picture) ![inline](data:image/svg+xml;base64,PHN2Zy8+)
![quoted]({FETCH}q"onerror="{PWN})

[a](javascript:{PWN}) [b](java&#115;cript:alert(1)) [c](data:text/html,<script>{PWN}</script>)
[d](VBScript:x "t&quot; onclick=alert(1)") <javascript:alert(1)>

$\\href{{javascript:alert(1)}}{{x}}$ $\\text{{<img src=x onerror={PWN.split(";")[0]}>}}$
$\\style{{background:url({FETCH}math)}}{{x}}$
"""
)


def data(**kinds: Any) -> dict[str, Any]:
    mimes = {kind.replace("_", "/"): value for kind, value in kinds.items()}
    return {"output_type": "display_data", "metadata": {}, "data": mimes}


def hostile() -> Result:
    """A submission that attacks wherever a student's text reaches a page."""
    notebook = solved(double=f"</pre><script>{PWN}</script>")
    attack = own("own-1", f"'</pre>{HOSTILE_HTML}'")
    attack["outputs"] = [
        data(text_html=HOSTILE_HTML),
        data(text_html=[HOSTILE_HTML]),
        data(application_javascript=PWN),
        data(text_javascript=PWN, text_plain=f"</pre>{HOSTILE_HTML}"),
        data(**{"image_svg+xml": f"<svg onload='{PWN}'/>"}),
        data(image_png=f'"><script>{PWN}</script>'),
        data(text_markdown=HOSTILE_MARKDOWN, text_latex=HOSTILE_HTML),
        data(**{f"</pre>{HOSTILE_HTML}": "x"}),
        {"output_type": "stream", "name": f"x{HOSTILE_HTML}", "text": [HOSTILE_HTML, 7]},
        {"output_type": "error", "ename": HOSTILE_HTML, "evalue": HOSTILE_HTML, "traceback": None},
        {"output_type": "error", "ename": "E", "evalue": "", "traceback": [HOSTILE_HTML, None]},
        {"output_type": "update_display_data", "data": [HOSTILE_HTML]},
        "no output",
    ]
    raw = {"cell_type": "raw", "metadata": {"raw_mimetype": "text/html"}, "source": HOSTILE_HTML}
    written = markdown("own-2", HOSTILE_MARKDOWN)
    written["attachments"] = {"a.png": {"image/png": f'"><script>{PWN}</script>'}}
    answer = markdown(EXPLAIN, HOSTILE_MARKDOWN, grade=True, solution=True, points=2)
    notebook["cells"] = [*notebook["cells"][:-1], attack, written, raw, "no cell", answer]
    notebook["metadata"]["title"] = HOSTILE_HTML
    return graded(
        f"</b>{HOSTILE_HTML}".replace("/", "_"),
        notebook=notebook,
        verdicts=(verdict(status="partly", message=HOSTILE_HTML, mistake="<b>x"),),
        notes=(Note("repair", HOSTILE_HTML),),
    )


@pytest.fixture
def course(tmp_path: Path) -> Course:
    return make_course(tmp_path / "course")


@pytest.fixture
def unsanitised(monkeypatch: pytest.MonkeyPatch):
    class PassesAll:
        def clean(self, source: str) -> str:
            return source

    feedback_cells._cached_markdown.cache_clear()
    monkeypatch.setattr(cleaning, "_CLEANER", PassesAll())
    yield
    feedback_cells._cached_markdown.cache_clear()


def shown(browser: Browser, path: Path, width: int = 1280) -> tuple[Page, list[str]]:
    """The page, opened, with every harm that it did: dialogs, requests, marks on the document."""
    harm: list[str] = []
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.on("dialog", lambda dialog: (harm.append("dialog"), dialog.dismiss()))
    page.on("request", lambda r: harm.append(r.url) if r.url != path.as_uri() else None)
    # A request that the page's policy stops is seen, but never leaves the browser.
    page.on("requestfailed", lambda r: r.failure == "csp" and harm.remove(r.url))
    page.goto(path.as_uri())
    for place in range(page.locator(".press").count()):
        page.evaluate(f"document.querySelectorAll('.press')[{place}].click()")
    page.wait_for_load_state("networkidle")
    if page.evaluate("document.documentElement.dataset.pwned"):
        harm.append("script")
    harm = [entry for entry in harm if not entry.startswith("data:image/")]
    return page, harm


def written(tmp_path: Path, page: str) -> Path:
    path = tmp_path / "page.html"
    path.write_text(page, encoding="utf-8", errors="replace")
    return path


def without_policy(page: str) -> str:
    bare = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
    assert bare != page
    return bare


@pytest.mark.parametrize("policy", [True, False])
def test_a_hostile_notebook_does_nothing(
    browser: Browser, tmp_path: Path, course: Course, policy: bool
) -> None:
    html = feedback_html(hostile(), course)
    page, harm = shown(browser, written(tmp_path, html if policy else without_policy(html)))
    assert harm == []
    active = "script, iframe, object, embed, form, input, button, svg, link, base, video, audio"
    assert page.locator(active).count() == 0
    assert page.locator("style").count() == 1
    assert page.locator("[style], [srcdoc], main .text [id], main .text [class]").count() == 0
    names = page.evaluate(
        "[...document.querySelectorAll('*')].flatMap(e => e.getAttributeNames())"
        ".filter(n => n.startsWith('on'))"
    )
    assert names == []
    targets = page.evaluate("[...document.querySelectorAll('[href]')].map(e => e.href)")
    assert [
        t for t in targets if not t.startswith(("http://", "https://", "mailto:", "file:"))
    ] == []
    assert page.locator(f"#{DOUBLE}").count() == 1
    page.close()


def test_without_sanitising_and_policy_that_test_would_fail(
    browser: Browser, tmp_path: Path, course: Course, unsanitised: None
) -> None:
    html = without_policy(feedback_html(hostile(), course))
    page, harm = shown(browser, written(tmp_path, html))
    assert {"dialog", "script"} <= set(harm)
    assert any(entry.startswith(FETCH) for entry in harm)
    page.close()


def test_the_policy_alone_stops_scripts_and_requests(
    browser: Browser, tmp_path: Path, course: Course, unsanitised: None
) -> None:
    page, harm = shown(browser, written(tmp_path, feedback_html(hostile(), course)))
    assert harm == []
    page.close()


def test_everything_a_student_wrote_is_still_there(course: Course) -> None:
    html = feedback_html(hostile(), course)
    assert html.count("4 of 4 points") > 5  # as text of the student's, in the student's frame
    assert "&lt;script&gt;" in html


def test_a_page_shows_points_status_mistake_and_message(course: Course) -> None:
    html = feedback_html(graded(notes=(Note("repair", "A cell was put back."),)), course)
    text = " ".join(re.sub(r"<[^>]*>", " ", html.partition("</style>")[2]).split())
    assert "2 of 3 points so far" in text
    assert "✎ 2 points are waiting for manual grading." in text
    assert "✔ Correct 2 of 2 points" in text
    assert "✘ Incorrect 0 of 1 points" in text
    assert "recognised mistake: squares" in text
    assert "It is x / 2." in text
    assert "✎ Manual grading - of 2 points" in text
    assert "A cell was put back." in text
    for question in (DOUBLE, HALVE, EXPLAIN):
        assert f'href="#{question}"' in html
        assert f'id="{question}"' in html


@pytest.mark.parametrize("status", NEEDS)
def test_points_that_need_what_the_machine_lacked_leave_the_total(
    course: Course, status: Status
) -> None:
    html = feedback_html(graded(verdicts=(verdict(), verdict(HALVE, status))), course)
    assert "<b>2</b> of 2 points so far" in html  # an answer waits for manual grading
    assert f"1 points need {NEEDS[status]}. They are left out of your total." in html


def test_what_a_person_gave_stands_in_place_of_what_the_grader_says(course: Course) -> None:
    given = ManualGrades(
        {HALVE: 0.75, EXPLAIN: 2.0}, {"lab05-halve-solution": "Nearly: <b>see</b> 5.2."}
    )
    page = feedback_html(graded(), course, given)
    assert '<p class="total"><b>4.75</b> of 5 points</p>' in page
    assert page.count("Graded manually") == 4  # in the overview and at the exercise, twice
    assert "Manual grading" not in page
    assert "waiting for manual grading" not in page
    assert "0.75 of 1 points" in page
    assert "Your instructor gave these points. The grader said: It is x / 2." in page
    assert "Your instructor:</b> Nearly: &lt;b&gt;see&lt;/b&gt; 5.2." in page
    assert "reads this answer and gives its points" not in page


def test_a_page_of_what_was_not_graded_shows_a_persons_comment(course: Course) -> None:
    given = ManualGrades({DOUBLE: 1.0}, {EXPLAIN: "Hand in the notebook, please."})
    page = feedback_html(end_of("ada", "quarantined", "It is a PDF."), course, given)
    assert "Your instructor:</b> Hand in the notebook, please." in page
    assert "1 of 2" in page


def test_a_page_is_known_by_what_people_gave(tmp_path: Path, course: Course) -> None:
    given = ManualGrades({HALVE: 0.75}, {})
    for shown_there in (NO_MANUAL_GRADES, given):
        write_feedback(graded(), OutFolder(tmp_path), course, shown_there)
        page = OutFolder(tmp_path).feedback_page(graded().key)
        assert [shows(page, graded(), one) for one in (NO_MANUAL_GRADES, given)] == [
            shown_there == one for one in (NO_MANUAL_GRADES, given)
        ]


def test_when_it_came_stands_under_the_points(course: Course) -> None:
    came = "Received 2026-11-22 23:00 (UTC+0100), 2 days late, so 20% of the points are taken off."
    page = feedback_html(
        graded(notes=(Note("receipt", came), Note("repair", "A cell was copied."))), course
    )
    assert page.index("points so far") < page.index(came) < page.index("<table")
    assert page.count(came) == 1
    assert page.index("Notes on your file") < page.index("A cell was copied.")


def test_parts_are_listed_where_there_are_several(course: Course) -> None:
    html = feedback_html(graded(verdicts=(verdict(status="partly"),)), course)
    assert "value: 1.5 earned" in html
    assert "edges: not earned" in html


@pytest.mark.parametrize("end", ["quarantined", "failed"])
def test_who_was_not_graded_reads_what_happened_and_what_to_do(course: Course, end: str) -> None:
    html = feedback_html(end_of("bob", end, "The file is <b>no</b> notebook."), course)
    assert "The file is &lt;b&gt;no&lt;/b&gt; notebook." in html
    assert {"quarantined": "submit that file", "failed": "not your fault"}[end] in html
    assert html.count("Not judged") == 3


def test_the_graders_own_cells_never_appear(tmp_path: Path) -> None:
    canary = "CANARY-7f3a"
    source = solved(double=f"def double(x): return {canary!r}")
    given = graded().notebook
    assert given is not None
    given = copy.deepcopy(dict(given))
    for notebook in (source, given):
        for cell in notebook["cells"]:
            if cell["id"] in {DOUBLE, HALVE}:
                cell["source"] = f"### BEGIN HIDDEN TESTS\n{canary}\n### END HIDDEN TESTS"
                cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": canary}]
    path = tmp_path / "solutions" / LAB / f"{LAB}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(source), encoding="utf-8")
    given["cells"] = [cell for cell in given["cells"] if cell["id"] != "lab05-halve"]
    for result in (graded(notebook=given), graded(notebook={"cells": []})):
        html = feedback_html(result, Course(tmp_path))
        assert canary not in html
        assert f'id="{HALVE}"' in html  # the deleted exercise is still marked


def test_a_copied_cell_is_marked_once(course: Course) -> None:
    notebook = solved()
    notebook["cells"] += copy.deepcopy(notebook["cells"])
    html = feedback_html(graded(notebook=notebook), course)
    assert html.count(f'id="{DOUBLE}"') == 1


def test_outputs_are_shown(browser: Browser, tmp_path: Path, course: Course) -> None:
    notebook = solved()
    cell = code("own", "show()")
    cell["outputs"] = [
        data(image_png=PNG + "\n", text_plain="<Figure>"),
        data(text_html="<style>.x{}</style><table><tr><td>7488</td></tr></table>"),
        {"output_type": "stream", "name": "stderr", "text": "\x1b[31m 10%\r 99%\x1b[0m\n"},
        {"output_type": "stream", "name": "stdout", "text": "a" * 50_000},
    ]
    answer = markdown("own-2", "![](attachment:p.png) $a_i < 2^{10}$ $\\nope{x}$ | $5")
    answer["attachments"] = {"p.png": {"image/png": PNG}}
    notebook["cells"] += [cell, answer]
    page, harm = shown(browser, written(tmp_path, feedback_html(graded(notebook=notebook), course)))
    assert harm == []
    sizes = page.evaluate("[...document.images].map(i => i.naturalWidth)")
    assert sizes == [1, 1]
    text = page.inner_text("main")
    for expected in ("7488", " 99%", "characters left out", "\\nope{x}"):
        assert expected in text
    assert " 10%" not in text
    assert page.locator("math msup").count() == 1
    page.close()


@pytest.mark.parametrize("width", [1280, 375])
def test_no_page_is_wider_than_its_screen(
    browser: Browser, tmp_path: Path, course: Course, width: int
) -> None:
    notebook = solved(double="x = " + "1 + " * 200 + "1")
    notebook["cells"].append(
        markdown("own", "| a |\n|---|\n| " + "x" * 400 + " |\n\n$" + "x+" * 99)
    )
    result = graded("s" * 90, notebook=notebook, verdicts=(verdict(message="w" * 300),))
    page, _ = shown(browser, written(tmp_path, feedback_html(result, course)), width)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.close()


def test_every_text_has_good_contrast(browser: Browser, tmp_path: Path, course: Course) -> None:
    statuses = ("right", "partly", "wrong", *NEEDS, "could_not_judge")
    worst = 21.0
    for status in statuses:
        result = graded(verdicts=(verdict(status=status),), isolated=False)
        page, _ = shown(browser, written(tmp_path, feedback_html(result, course)))
        worst = min(worst, page.evaluate(_WORST_CONTRAST))
        page.close()
    assert worst >= 4.5  # WCAG 2.2, level AA


_WORST_CONTRAST = """() => {
  const light = c => { const [r, g, b] = c.match(/[\\d.]+/g).map(Number).map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const behind = e => { for (; e; e = e.parentElement) {
    const c = getComputedStyle(e).backgroundColor; if (!/, 0\\)$/.test(c)) return c; }
    return "rgb(255,255,255)"; };
  return Math.min(...[...document.body.querySelectorAll("*")].filter(e => e.innerText).map(e => {
    const [a, b] = [light(getComputedStyle(e).color), light(behind(e))].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05); }));
}"""


def test_a_page_is_written_where_the_student_looks(tmp_path: Path, course: Course) -> None:
    write_feedback(graded(), OutFolder(tmp_path), course)
    path = tmp_path / "feedback" / "ada" / f"{LAB}.html"
    assert path.read_text(encoding="utf-8") == feedback_html(graded(), course)
    with pytest.raises(ValueError, match="cannot name a file"):
        write_feedback(graded(".."), OutFolder(tmp_path), course)


def test_text_that_no_encoding_has_is_no_reason_to_fail(tmp_path: Path, course: Course) -> None:
    write_feedback(
        graded(notes=(Note("repair", "half a pair: \ud83d"),)), OutFolder(tmp_path), course
    )
    assert (tmp_path / "feedback" / "ada" / f"{LAB}.html").read_bytes().endswith(b"</html>\n")


def test_a_page_is_no_longer_than_one_may_be(course: Course) -> None:
    full = [code(f"long-{number}", "'" * 30_000) for number in range(20)]
    page = feedback_html(graded(notebook={"cells": full}), course)
    assert "This cell is not shown" in page
    assert len(page) < 1_700_000


def test_a_picture_that_is_shown_a_thousand_times_is_not_inlined_as_often() -> None:
    picture = {"image/png": PNG.rstrip("=") + "A" * (480_000 - len(PNG.rstrip("=")))}
    html = markdown_to_html("![a](attachment:a.png)\n\n" * 800, {"a.png": picture})
    assert html.count("data:image") == 4
    assert html.count("<img") == 800


@pytest.mark.parametrize(
    ("late", "line"),
    [
        (Lateness(20, days=2), "2 of 3, less 20% for 2 days: <b>1.6</b> points so far"),
        (Lateness(10, days=1), "2 of 3, less 10% for 1 day: <b>1.8</b> points so far"),
        (Lateness(100), "2 of 3, less 100% for being late: <b>0</b> points so far"),
        (Lateness(0, days=2), "<b>2</b> of 3 points so far"),
        (ON_TIME, "<b>2</b> of 3 points so far"),
    ],
)
def test_what_being_late_leaves_is_said(course: Course, late: Lateness, line: str) -> None:
    assert f'<p class="total">{line}</p>' in feedback_html(graded(), course, NO_MANUAL_GRADES, late)


def test_points_are_final_once_nothing_waits_for_manual_grading(course: Course) -> None:
    given = ManualGrades({EXPLAIN: 1.0}, {})
    page = feedback_html(graded(), course, given, Lateness(20, days=2))
    assert "3 of 5, less 20% for 2 days: <b>2.4</b> points</p>" in page
    assert "so far" not in page


def test_an_answer_that_nobody_wrote_is_said_to_be_none(course: Course) -> None:
    blank = Verdict(EXPLAIN, "unanswered", {"answer": 0.0}, 2.0, "You wrote no answer here.")
    page = feedback_html(graded(verdicts=(*graded().verdicts, blank)), course)
    assert "∅</span> Not answered" in page
    assert "0 of 2 points" in page
    assert "waiting for manual grading" not in page
