"""The templates of HTML pages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

__all__ = ["TEMPLATES", "html_template"]

TEMPLATES = Path(__file__).parents[1] / "templates"


def html_template(name: str, filters: dict[str, Callable[..., Any]]) -> Template:
    """Return a template that escapes what it is given, and fails where a value is missing."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(filters)
    return environment.get_template(f"{name}.html.j2")
