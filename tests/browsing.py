"""Debian's Chromium, and the pictures that are taken with it."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser that is installed; nothing is downloaded. Without one the test is skipped, and in CI it fails."""
    program = shutil.which("chromium")
    if program is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("needs a browser: apt-get install chromium")
    with sync_playwright() as playwright:
        # No sandbox: as root, which CI is, Chromium starts in no other way.
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


def picture(page: Page, name: str, *, whole: bool = False) -> None:
    """Take a picture of what the window shows, or of the whole page, if SCREENSHOTS names a folder."""
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=whole)
