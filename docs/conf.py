"""The website's settings: python -m sphinx -W docs site, with the extra `docs` installed."""

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

project = "Peak Memory"
author = "The authors of peakmem"
extensions = ["myst_parser"]
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
    """Add the renderer that turns LaTeX into MathML."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))


def _inline(translator: HTML5Translator, node: nodes.math) -> None:
    translator.body.append(convert(node.astext()))
    raise nodes.SkipNode


def _block(translator: HTML5Translator, node: nodes.math_block) -> None:
    translator.body.append(convert(node.astext(), display="block"))
    raise nodes.SkipNode
