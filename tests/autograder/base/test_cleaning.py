from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from nbconvert.filters.markdown_mistune import markdown2html_mistune

from autograder.base.cleaning import clean_html, inert_markdown, safe_image, safe_output
from autograder.base.markdown import markdown_to_html
from autograder.base.plain_text import plain_text
from tests.autograder.small_class import PNG

HONEST = (
    "![my plot](attachment:image.png) and ![](attachment:my%20plot.png)",
    r"$\left(2\sqrt{n}\right) \cdot \text{bytes}$, \letter, \classes",
    "It fits! [see](https://a.org)",
)


def test_html_keeps_what_a_data_frame_prints() -> None:
    table = "<table><thead><tr><th>GiB</th></tr></thead><tbody><tr><td>1</td></tr></tbody></table>"
    assert clean_html(f"<style>.a{{}}</style><div class='x'>{table}</div>") == f"<div>{table}</div>"


@pytest.mark.parametrize(
    "source",
    [
        "<script>alert(1)</script>",
        "[a](javascript:alert(1))",
        "[a](jAvA&#115;cript&colon;alert(1))",
        "[a](java\\\nscript\\:alert(1))",
        "[a]: data:text/html,x",
        "&lt;img src=x onerror=alert(1)&gt;",
        "<\\!-- x",
        "![x](http://evil.example/x.png)",
        "![x](//evil.example/x.png)",
        "![x](/formgrader/api/assignments)",
        "![x](<http://evil.example>)",
        "![x][1]\n\n[1]: http://evil.example/x.png",
        "![evil]\n\n[evil]: http://evil.example/x.png",
        "![a![b](attachment:b.png)](http://evil.example/x.png)",
        "!![b](attachment:b.png)[x](http://evil.example/x.png)",
        "![a](attachment:b.png) &#33;[x](http://evil.example/x.png)",
        "![x](attachment:b.png 'http://evil.example')",
        r"$\style{background:url(http://evil.example/x.png)}{x}$",
        "&#36;&#92;style{background:url(http://evil.example/x.png)}{x}&#36;",
        r"$\let\q\style \q{background:url(//evil.example)}{x}$",
        r"$$\bbox[background:url(//evil.example)]{x}$$",
        r"$\require{html}\href{http://evil.example}{x}$",
    ],
)
def test_markdown_that_may_be_active_is_shown_as_its_source(source: str) -> None:
    fenced = f"```\n{source}\n```"
    assert inert_markdown(source).endswith(fenced)


@pytest.mark.parametrize(
    "source", ["so *it* fits", "$a < b$ and 3 > 2", "[x](https://a.org)", "", *HONEST]
)
def test_other_markdown_stays_as_it_is(source: str) -> None:
    assert inert_markdown(source) == source


def test_a_fence_in_the_source_does_not_end_the_fence_around_it() -> None:
    assert inert_markdown("````\n<b>").endswith("`````\n````\n<b>\n`````")


def test_plain_text_is_what_a_terminal_shows_in_the_end() -> None:
    assert plain_text(["1%\r99%\r\n", "a\r\n\x1b]8;;http://x\x07b\x1b[0m\x00"]) == "99%\na\nb"
    assert plain_text(7) == ""


@pytest.mark.parametrize("text", ["a" * 10**6, "\x1b[" * 10**5, "\x1b]" * 10**5, "\r" * 10**6])
def test_no_long_output_takes_long(text: str) -> None:
    assert len(plain_text(text)) <= len(text)  # a pattern that backtracks would not come back


@pytest.mark.parametrize(
    "source", ["[" * 20_000, "> " * 9_000, "$" + "{" * 1_500 + "$", "**a " * 5_000, "<" * 10**6]
)
def test_text_that_breaks_a_parser_is_shown_all_the_same(source: str) -> None:
    assert markdown_to_html(source)


def test_a_picture_is_what_its_type_says() -> None:
    assert safe_image("image/png", f"{PNG}\n") == PNG
    assert safe_image("image/jpeg", PNG) is None
    assert safe_image("image/svg+xml", PNG) is None
    assert safe_image("image/png", '"><script>') is None
    assert safe_image("image/png", None) is None


def test_an_output_of_no_known_kind_is_named() -> None:
    output = safe_output({"output_type": "display_data", "data": {"application/x": {"a": 1}}})
    assert output["data"] == {"text/plain": "(an output of application/x, which is not shown here)"}


@pytest.mark.parametrize(
    "source",
    [
        r"<p>$\href{javascript:steal()}{click}$</p>",
        r"<p>$\hr<!-- -->ef{javascript:steal()}{click}$</p>",
        "<p>&#36;&#92;href{javascript:steal()}{click}&#36;</p>",
        r"<p>\(\style{background:url(//evil.example)}{x}\)</p>",
    ],
)
def test_an_outputs_formula_that_may_be_active_is_left_out(source: str) -> None:
    data = {"text/html": source, "text/plain": "x"}
    output = safe_output({"output_type": "display_data", "data": data})
    assert output["data"] == {"text/plain": "x"}


def test_an_outputs_other_formulas_stay() -> None:
    data = {"text/html": "<p>$y^2$</p>"}
    assert safe_output({"output_type": "display_data", "data": data})["data"] == data


def test_a_formula_that_nobody_knows_is_its_source() -> None:
    assert "<code>\\nope{x}</code>" in markdown_to_html("$\\nope{x}$")
    assert "<msup>" in markdown_to_html("$2^{10}$")
    assert "<script" not in markdown_to_html("$\\text{<script>alert(1)</script>}$")


def requests_of(page: str) -> list[str]:
    """The requests of a browser for Formgrader's rendering of a text."""
    found: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.extend(
                value or ""
                for name, value in attrs
                if name in ("src", "srcset", "data", "poster", "background", "style")
                or (name == "href" and tag == "link")
                if not (value or "").startswith(("attachment:", "data:"))
            )

    Reader().feed(page)
    return found


MARKDOWN = "![~!~[~](~)~]~[1]: ~attachment:a.png~http://e.example/x~\n\n~\\~ ~`~<~>~&#33;~&lt;~$~x"
HTML = (
    "<img src=~http://e.example~<svg~<style>~url(~ onload=~>~<a href=~javascript:~\"~'~</~<b>~"
    "<math>~<mtext>~&lt;~x~<link rel=stylesheet href="
)


def made_of(pieces: str) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(pieces.split("~")), max_size=14).map("".join)


@given(made_of(MARKDOWN))
@example("![x](http://e.example/x.png)")
def test_formgrader_asks_for_nothing_whatever_a_text_is_made_of(source: str) -> None:
    assert requests_of(markdown2html_mistune(inert_markdown(source))) == []


def test_without_the_gate_formgrader_would_ask() -> None:
    assert requests_of(markdown2html_mistune("![x](http://e.example/x.png)"))


@given(made_of(HTML))
def test_clean_html_asks_for_nothing_and_runs_nothing(source: str) -> None:
    cleaned = clean_html(source)
    assert requests_of(cleaned) == []
    assert clean_html(cleaned) == cleaned
