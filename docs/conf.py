"""The website's settings: python -m sphinx -W docs site, with the extra `docs` installed."""

project = "Peak Memory"
author = "The authors of peakmem"
extensions = ["myst_parser"]
exclude_patterns = ["measurements"]
myst_heading_anchors = 3  # so that pages can link to each other's sections
html_theme = "furo"
html_title = "Peak Memory"
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
