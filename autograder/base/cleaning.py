"""Makes text and outputs from students safe to show to others.

Two rules. HTML leaves only through `clean_html`, the last step, which keeps an allowlist and drops
the rest: scripts, styles, classes, ids, frames, forms, SVG, and every address a browser would
fetch. Outputs aren't filtered but rebuilt from the few known kinds.
"""

from __future__ import annotations

import base64
import binascii
import html
import re
from collections.abc import Mapping
from typing import Any

import nh3

from autograder.base.plain_text import plain_text, text_of, visible

__all__ = ["clean_html", "inert_markdown", "safe_image", "safe_output"]

_TEXT_TAGS = (
    "a abbr b blockquote br caption code dd del details div dl dt em h1 h2 h3 h4 h5 h6 hr i img "
    "ins kbd li ol p pre q s samp small span strong sub summary sup table tbody td tfoot th thead "
    "tr u ul var"
)
_MATH_TAGS = (
    "math menclose mfrac mi mmultiscripts mn mo mover mphantom mroot mrow mspace msqrt mstyle msub "
    "msubsup msup mtable mtd mtext mtr munder munderover"
)
_ATTRIBUTES: dict[str, set[str]] = {
    "*": set(),
    "a": {"href"},
    "img": {"src", "alt"},
    "ol": {"start"},
    "td": {"colspan", "rowspan", "align"},
    "th": {"colspan", "rowspan", "align"},
    "math": {"display"},
    "menclose": {"notation"},
    "mfrac": {"linethickness"},
    "mi": {"mathvariant"},
    "mn": {"mathvariant"},
    "mo": {"fence", "form", "movablelimits", "separator", "stretchy"},
    "mover": {"accent"},
    "mspace": {"width"},
    "mstyle": {"displaystyle", "mathvariant", "scriptlevel"},
    "mtable": {"columnalign", "columnlines", "rowlines"},
    "mtd": {"columnalign"},
    "mtext": {"mathvariant"},
    "munder": {"accentunder"},
}
# Patterns for the attributes that can't take just any value.
_VALUES = {
    "href": re.compile(r"(https?://|mailto:)[^\s\x00-\x1f]+", re.IGNORECASE),
    "src": re.compile(r"data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+"),
    "width": re.compile(r"\d(\.\d{1,4})?em"),  # wider or negative widths would cover other text
    "colspan": re.compile(r"\d{1,2}"),
    "rowspan": re.compile(r"\d{1,3}"),
}
_CLEANER = nh3.Cleaner(
    tags={*_TEXT_TAGS.split(), *_MATH_TAGS.split()},
    clean_content_tags={"script", "style", "title", "iframe", "object", "svg", "template"},
    attributes=_ATTRIBUTES,
    attribute_filter=lambda _tag, name, value: _allowed(name, value),
    url_schemes={"http", "https", "mailto", "data"},
    link_rel="noopener noreferrer nofollow",
)

# SVG is left out because it can hold scripts.
_MAGIC = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}


def clean_html(source: str) -> str:
    """Return HTML reduced to text, tables, formulas, links and inlined pictures.

    >>> clean_html('<p onclick="steal()">a<script>alert(1)</script> <b>b</b></p>')
    '<p>a <b>b</b></p>'
    """
    return visible(_CLEANER.clean(source))


def _allowed(name: str, value: str) -> str | None:
    pattern = _VALUES.get(name)
    return value if pattern is None or pattern.fullmatch(value) else None


# Bounds on an output's HTML, in characters and in tags, because the time to clean it grows with the
# square of the nesting depth.
_LONGEST_HTML = 200_000
_MOST_TAGS = 10_000


def safe_image(kind: str, value: object) -> str | None:
    """Return a picture's base64 on one line, or None if it isn't a picture of this MIME type."""
    if kind not in _MAGIC:
        return None
    encoded = "".join(text_of(value).split())
    try:
        data = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return None
    return encoded if data.startswith(_MAGIC[kind]) else None


def safe_output(output: Mapping[str, Any]) -> dict[str, Any]:
    """Return one output of a cell as nbformat 4 JSON, rebuilt from its safe parts."""
    kind = output.get("output_type")
    if kind == "stream":
        name = "stderr" if output.get("name") == "stderr" else "stdout"
        return {"output_type": "stream", "name": name, "text": plain_text(output.get("text"))}
    if kind == "error":
        trace = output.get("traceback")
        lines = [plain_text(line) for line in trace] if isinstance(trace, list) else []
        return {
            "output_type": "error",
            "ename": plain_text(output.get("ename")),
            "evalue": plain_text(output.get("evalue")),
            "traceback": lines,
        }
    data = output.get("data")
    safe = _safe_data(data if isinstance(data, Mapping) else {})
    if kind == "execute_result":  # the value of a cell's last line, which may be its points
        return {"output_type": kind, "data": safe, "metadata": {}, "execution_count": None}
    return {"output_type": "display_data", "data": safe, "metadata": {}}


def _safe_data(data: Mapping[str, Any]) -> dict[str, str]:
    safe: dict[str, str] = {}
    for kind in _MAGIC:
        image = safe_image(kind, data.get(kind))
        if image is not None:
            safe[kind] = image
    source = text_of(data.get("text/html"))
    bounded = len(source) <= _LONGEST_HTML and source.count("<") <= _MOST_TAGS
    shown = clean_html(source) if bounded else ""
    if _ACTIVE_MATH.search(html.unescape(shown).lower()):
        shown = ""  # Formgrader runs MathJax on outputs too
    if re.sub(r"<(?!img)[^>]*>|\s", "", shown):  # something visible is left
        safe["text/html"] = shown
    text = plain_text(data.get("text/plain"))
    if text or not safe:
        kinds = ", ".join(sorted(str(kind)[:60] for kind in data)) or "no kind"
        safe["text/plain"] = text or f"(an output of {plain_text(kinds)}, which is not shown here)"
    return safe


_RAW_HTML = re.compile(r"<[a-z/!?]")
_ACTIVE_LINK = re.compile(r"(javascript|vbscript|data):")
# A picture inside the notebook; any other would make the reader's browser fetch an address.
_ATTACHED = re.compile(r"!\[[^\[\]]*\]\(attachment:[^()\s<>]*\)")
# Commands that make MathJax set a style, an attribute or a link, load more code, or rename
# commands.
_ACTIVE_MATH = re.compile(
    r"\\(style|class|cssid|href|url|html|mmltoken|bbox|texttip|action|toggle|includegraphics|"
    r"require|unicode|csname|let|[gex]?def|(re)?newcommand|(re)?newenvironment)(?![a-z])"
)


def inert_markdown(source: str) -> str:
    """Return Markdown that renders no HTML of its own in any viewer.

    Formgrader renders Markdown unsanitised, inside the instructor's session. So text with raw HTML,
    a link that runs code, an external picture, or a formula that does more than show itself is
    shown as its source.

    >>> inert_markdown("so *it* fits")
    'so *it* fits'
    >>> print(inert_markdown("<script>alert(1)</script>"))
    This text may hold HTML; here is its source.
    <BLANKLINE>
    ```
    <script>alert(1)</script>
    ```
    """
    unescaped = html.unescape(source).lower()
    read = unescaped.replace("\\", "")
    unbroken = re.sub(r"[\s\x00-\x1f]", "", read)  # browsers ignore both within a scheme
    if not (
        _RAW_HTML.search(read)
        or _ACTIVE_LINK.search(unbroken)
        or "![" in _ATTACHED.sub("", read)
        or _ACTIVE_MATH.search(unescaped)
    ):
        return source
    longest = max((len(run) for run in re.findall("`+", source)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"This text may hold HTML; here is its source.\n\n{fence}\n{source}\n{fence}"
