"""A real Chromium without a window, driven over a pipe by its own DevTools protocol: nothing to install but the browser."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
)
PATIENCE = 60.0


def path():
    """Where the browser is; None where there is none."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """One page. `events` are what the page said: errors, messages, requests."""

    def __init__(self, commands, answers):
        self.commands, self.answers, self.buffer, self.last, self.session = commands, answers, b"", 0, None
        self.events = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method, **parameters):
        """One command of the protocol; its answer."""
        self.last += 1
        message = {"id": self.last, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + PATIENCE
        while True:
            answer = self._next(until)
            if answer.get("id") == self.last:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]
            self.events.append(answer)

    def wait(self, method):
        """Until the page says so."""
        until = time.monotonic() + PATIENCE
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self._next(until))

    def _next(self, until):
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.answers], [], [], max(until - time.monotonic(), 0.0))
            assert ready, "Chromium does not answer"
            part = os.read(self.answers, 1 << 20)
            assert part, "Chromium has ended"
            self.buffer += part
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def open(self, file, *, width=1200, height=900, dark=False):
        """Load a file at a width, in a colour scheme."""
        self.events.clear()
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        features = [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        self.call("Emulation.setEmulatedMedia", features=features)
        self.call("Page.navigate", url=file.resolve().as_uri())
        self.wait("Page.loadEventFired")

    def run(self, script):
        """The value of a piece of JavaScript in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def click(self, selector):
        """Press the mouse where the element is, as a hand would."""
        box = self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block: 'center'}});"
            "const b = e.getClientRects()[0]; return [b.x + b.width / 2, b.y + b.height / 2] })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)
        self.run("new Promise(done => setTimeout(done, 50))")

    def complaints(self):
        """Errors and warnings that the page wrote on the console, and exceptions."""
        self.run("1")  # whatever was said before is here now
        said = [event for event in self.events if event.get("method") in {"Log.entryAdded", "Runtime.exceptionThrown"}]
        calls = [event for event in self.events if event.get("method") == "Runtime.consoleAPICalled"]
        return said + [event for event in calls if event["params"]["type"] in {"error", "warning", "assert"}]

    def requests(self):
        """What the page asked for."""
        self.run("1")
        return [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]

    def screenshot(self, file, *, whole=True):
        """The page as PNG, from top to bottom."""
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        file.write_bytes(base64.b64decode(shot["data"]))


#: Becomes the browser, which reads its commands from descriptor 3 and answers on 4.
WIRE = """
import fcntl, os, sys
commands, answers = (fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3])
os.dup2(commands, 3)
os.dup2(answers, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


@contextmanager
def browser(profile):
    """A browser for the time of a test; `profile` is an empty folder."""
    to_page, commands = os.pipe()
    answers, from_page = os.pipe()
    start = [sys.executable, "-c", WIRE, str(to_page), str(from_page)]
    quiet = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    process = subprocess.Popen(
        [*start, path(), *FLAGS, f"--user-data-dir={profile}", "about:blank"], pass_fds=(to_page, from_page), **quiet
    )
    os.close(to_page)
    os.close(from_page)
    try:
        yield Browser(commands, answers)
    finally:
        process.terminate()
        process.wait(30)
        os.close(commands)
        os.close(answers)
