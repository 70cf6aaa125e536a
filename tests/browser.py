"""A real Chromium without a window, for tests of what people look at."""

from __future__ import annotations

import base64
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

ARGUMENTS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--hide-scrollbars")


def need_chromium() -> tuple[str, str]:
    """Paths of Chromium and its driver; without them the test is skipped, or fails where it must not be."""
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if browser and driver:
        return browser, driver
    missing = " and ".join(name for name, found in (("chromium", browser), ("chromium-driver", driver)) if not found)
    reason = f"Pages are not looked at: Debian's package {missing} is not installed."
    if os.environ.get("EVENHAND_BROWSER") == "required":
        pytest.fail(reason)
    pytest.skip(reason)


@contextmanager
def opened(page: Path, width: int = 1280, *, dark: bool = False, at: str = "") -> Iterator[Chrome]:
    """The page on a screen of some width, after all of its figures are drawn; `at` is a part, such as "#row-7"."""
    binary, driver_path = need_chromium()
    options = Options()
    options.binary_location = binary
    for argument in ARGUMENTS:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = Chrome(options=options, service=Service(driver_path))
    try:
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        driver.get(page.resolve().as_uri() + at)
        WebDriverWait(driver, 30).until(lambda _: not undrawn(driver))
        yield driver
    finally:
        driver.quit()


def undrawn(driver: Chrome) -> list[str]:
    """Figures of the page that have no marks yet."""
    found: list[str] = driver.execute_script(
        "return [...document.querySelectorAll('[id^=figure-]')]"
        ".filter(f => f.dataset.drawn !== 'yes' || !f.querySelector('.role-mark path, .role-mark text')).map(f => f.id)"
    )
    return found


def complaints(driver: Chrome) -> list[str]:
    """What the page wrote to the console as a warning or an error."""
    return [entry["message"] for entry in driver.get_log("browser") if entry["level"] in ("WARNING", "SEVERE")]


def requests(driver: Chrome) -> list[str]:
    """Addresses that the page asked for, besides itself and what it holds."""
    found = []
    for entry in driver.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            found.append(message["params"]["request"]["url"])
    return [url for url in found if not url.startswith(("file:", "data:", "blob:"))]


def too_wide(driver: Chrome) -> list[str]:
    """Elements that stick out of the screen, unless they scroll inside a frame of their own."""
    found: list[str] = driver.execute_script(
        """
        const width = document.documentElement.clientWidth, out = [];
        if (document.documentElement.scrollWidth > width) out.push("the page itself");
        for (const e of document.querySelectorAll("main *")) {
          if (e.closest(".wide-table, pre, details:not([open])")) continue;
          if (e.closest("svg") !== null && e.tagName !== "svg") continue;
          const box = e.getBoundingClientRect();
          if (box.width && box.right > width + 1) out.push(e.tagName + "." + e.getAttribute("class"));
        }
        return out;
        """
    )
    return found


def printed(driver: Chrome) -> bytes:
    """The page as a PDF, on paper of the size that it asks for."""
    found = driver.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True, "printBackground": True})
    return base64.b64decode(found["data"])


@contextmanager
def on_paper(driver: Chrome, width: int) -> Iterator[None]:
    """The layout of print on the screen, to be measured: a sheet of some pixels between its margins."""
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    sheet = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", sheet)
    try:
        yield
    finally:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "screen"})
