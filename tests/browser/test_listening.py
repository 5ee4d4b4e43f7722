"""The tests in this folder fail if a page logs errors."""

from __future__ import annotations

from playwright.sync_api import Browser

from tests.browser.conftest import listen


def test_errors_of_a_page_are_heard(browser: Browser) -> None:
    page = browser.new_page()
    complaints = listen(page)
    page.set_content("<script>console.error('logged'); throw new Error('thrown')</script>")
    page.evaluate("0")  # the page answers after what it said before
    assert complaints == ["logged", "thrown"]
    page.close()
