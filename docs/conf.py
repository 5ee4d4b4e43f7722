"""The website's settings: python -m sphinx -W docs site, with the extra `docs` installed."""

import re
from importlib import import_module
from pathlib import Path

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

project = "Peak Memory"
author = "The authors of peakmem"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
autodoc_member_order = "bysource"
default_role = "code"  # docstrings name things in single backticks, as Markdown does
exclude_patterns = ["measurements"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3  # so that pages can link to each other's sections
html_theme = "furo"
html_title = "Peak Memory"
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_math_renderer = "mathml"  # Sphinx's own, MathJax, would load a script from the network


def setup(app: Sphinx) -> None:
    """Add the renderer that turns LaTeX into MathML, and load what the reference lists."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    _load_public_names()
    app.connect("autodoc-process-docstring", _keep_whole, priority=400)  # before napoleon


def _load_public_names() -> None:
    """Load each package's names, which it offers late and autodoc would miss."""
    page = Path(__file__).with_name("api.md").read_text("utf-8")
    for package in map(import_module, re.findall(r"automodule:: (\S+)", page)):
        for name in package.__all__:
            setattr(package, name, getattr(package, name))


def _inline(translator: HTML5Translator, node: nodes.math) -> None:
    translator.body.append(convert(node.astext()))
    raise nodes.SkipNode


def _block(translator: HTML5Translator, node: nodes.math_block) -> None:
    translator.body.append(convert(node.astext(), display="block"))
    raise nodes.SkipNode


def _keep_whole(
    _app: Sphinx, kind: str, _name: str, _found: object, _options: object, lines: list[str]
) -> None:
    """Start a field's text with an empty comment, or napoleon takes `x` of `x: y` as its type."""
    if kind in ("attribute", "property"):
        lines[:0] = ["..", ""]
