"""Renders Markdown as safe HTML, with LaTeX as MathML, so that a page needs no scripts."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

import mistune
from latex2mathml.converter import convert_to_element
from mistune.util import striptags

from autograder.base.cleaning import clean_html, safe_image

__all__ = ["markdown_to_html"]

_LONGEST = 20_000  # characters; longer cells are shown as plain text, because parsing is slow
_LONGEST_FORMULA = 2_000
_MAX_INLINED = 2_000_000  # characters of one cell's pictures, counted each time one is shown


class _Renderer(mistune.HTMLRenderer):
    """mistune's HTML, with formulas as MathML and attached pictures inlined."""

    attachments: Mapping[str, Any] = {}
    inlined_left = 0

    def inline_math(self, text: str) -> str:
        return _mathml(text, "inline")

    def block_math(self, text: str) -> str:
        return f"<div>{_mathml(text, 'block')}</div>"

    def image(self, text: str, url: str, title: str | None = None) -> str:
        pictures = self.attachments.get(url.removeprefix("attachment:"))
        if url.startswith("attachment:") and isinstance(pictures, Mapping):
            for kind, value in pictures.items():
                data = safe_image(str(kind), value)
                if data is not None and len(data) <= self.inlined_left:
                    self.inlined_left -= len(data)
                    url = f"data:{kind};base64,{data}"
        return f'<img src="{html.escape(url)}" alt="{html.escape(striptags(text))}">'


_RENDERER = _Renderer(escape=False)  # raw HTML is cleaned by clean_html with the rest
_MARKDOWN = mistune.create_markdown(renderer=_RENDERER, plugins=["table", "strikethrough", "math"])


def markdown_to_html(source: str, attachments: Mapping[str, Any] | None = None) -> str:
    r"""Return Markdown as HTML cleaned by `clean_html`.

    `attachments` are the cell's own, as in nbformat. Text that can't be parsed is shown verbatim.

    >>> markdown_to_html("a *b* [c](javascript:alert(1))")
    '<p>a <em>b</em> <a rel="noopener noreferrer nofollow">c</a></p>\n'
    """
    rendered: object = None
    if len(source) <= _LONGEST:
        _RENDERER.attachments, _RENDERER.inlined_left = attachments or {}, _MAX_INLINED
        try:
            rendered = _MARKDOWN(source)
        except Exception:  # hostile text may break the parser, but the page still has to be made
            rendered = None
        finally:
            _RENDERER.attachments = {}
    if not isinstance(rendered, str):
        rendered = f"<pre>{html.escape(source)}</pre>"
    return clean_html(rendered)


def _mathml(latex: str, display: str) -> str:
    """LaTeX as MathML, or its source if the converter doesn't know a command."""
    source = f"<code>{html.escape(latex.strip())}</code>"
    if len(latex) > _LONGEST_FORMULA:
        return source
    try:
        formula = convert_to_element(latex, display=display)
    except Exception:  # the converter raises many types, RecursionError among them
        return source
    for element in formula.iter():
        # The converter writes symbols as entities, and its own `convert` unescapes the finished
        # markup, which would turn text into tags. Unescaping each text node keeps text text.
        element.text = html.unescape(element.text or "")
        if element.text.startswith("\\"):
            return source
    return ElementTree.tostring(formula, encoding="unicode")
