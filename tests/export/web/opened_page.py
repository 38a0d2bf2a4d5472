"""A page that is open in a browser: its requests, its answer, its width."""

from __future__ import annotations

import json
from typing import Any

from tests.browser import set_width

WAIT = "const done = arguments[0]; (function wait() { running || wanted ? setTimeout(wait, 5) : done(); })()"


def open_page(browser: Any, address: str) -> None:
    for log in ("performance", "browser"):
        browser.get_log(log)  # and forget it
    browser.get(address)
    browser.execute_async_script("started.then(arguments[0])")


def requested(browser: Any) -> set[str]:
    """The addresses that the page has asked for, without text that it holds itself."""
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = [event["params"] for event in events if event["method"] == "Network.requestWillBeSent"]
    asked = {each["request"]["url"] for each in sent if not each["documentURL"].startswith("chrome:")}
    return {address for address in asked if not address.startswith(("data:", "blob:"))}


def answer(browser: Any) -> str:
    """The sentence of the answer, once the network has answered."""
    browser.execute_async_script(WAIT)
    return str(browser.find_element("id", "answer").text)


def assert_fits_a_phone(browser: Any) -> None:
    set_width(browser, 390)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    set_width(browser, 1200)
