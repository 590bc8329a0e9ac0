"""A page in headless Chromium, driven by chromedriver's W3C protocol with nothing but the standard library."""

import contextlib
import json
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from base64 import b64decode

import pytest

MISSING = "chromium and chromedriver are not installed; on Debian: apt install chromium chromium-driver"
FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--hide-scrollbars", "--force-device-scale-factor=1"),
)
WAIT = 60

# Every piece of text that is seen, with its boxes; what is only for screen readers is clipped to a pixel.
TEXTS = """
const seen = [];
let count = 0;
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let node = walker.nextNode(); node; node = walker.nextNode()) {
  const head = node.parentElement.closest('thead, .skip');
  const hidden = head && (head.getBoundingClientRect().width <= 1 || head.getBoundingClientRect().right < 0);
  if (!node.data.trim() || node.parentElement.closest('title, desc') || hidden) continue;
  count += 1;
  const range = document.createRange();
  range.selectNodeContents(node);
  for (const box of range.getClientRects())
    if (box.width > 1 && box.height > 1)
      seen.push([count, node.data.trim().slice(0, 40), box.left, box.top, box.right, box.bottom]);
}
return seen;
"""

# Text of a drawing that is cut off at its edge.
CUT = """
return [...document.querySelectorAll('svg text')].filter(text => {
  const inner = text.getBoundingClientRect(), outer = text.ownerSVGElement.getBoundingClientRect();
  return inner.left < outer.left - 1 || inner.right > outer.right + 1 || inner.top < outer.top - 1 ||
         inner.bottom > outer.bottom + 1;
}).map(text => text.textContent);
"""


class Browser:
    """One window. `ask` sends a command of the protocol."""

    def __init__(self, place, folder):
        self.place = place
        options = {"args": [*FLAGS, f"--user-data-dir={folder}"], "binary": shutil.which("chromium")}
        wanted = {"browserName": "chrome", "goog:chromeOptions": options,
                  "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}  # fmt: skip
        made = self._send("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self.session = f"/session/{made['sessionId']}"

    def ask(self, what, **given):
        return self._send("POST", f"{self.session}/{what}", given)

    def cdp(self, command, **given):
        return self.ask("goog/cdp/execute", cmd=command, params=given)

    def run(self, script):
        return self.ask("execute/sync", script=script, args=[])

    def show(self, path, width, height=900, scheme="light"):
        """Open a file in a window of this size and scheme, offline."""
        self.cdp("Network.enable")
        self.cdp("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=0, uploadThroughput=0)
        self.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.logs("browser"), self.logs("performance")  # what was there before does not count
        self.ask("url", url=path.as_uri())

    def logs(self, kind):
        return self.ask("se/log", type=kind)

    def requests(self):
        """Addresses that the page asked for."""
        said = [json.loads(entry["message"])["message"] for entry in self.logs("performance")]
        return [one["params"]["request"]["url"] for one in said if one["method"] == "Network.requestWillBeSent"]

    def printed(self):
        """The page as PDF."""
        return b64decode(self.ask("print"))

    def overlaps(self):
        """Pairs of different texts whose boxes share more than a pixel each way."""
        boxes = sorted(self.run(TEXTS), key=lambda box: box[3])
        found = []
        for place, (number, one, left, _, right, bottom) in enumerate(boxes):
            for number2, other, left2, top2, right2, bottom2 in boxes[place + 1 :]:
                if top2 >= bottom - 1:
                    break
                across, down = min(right, right2) - max(left, left2), min(bottom, bottom2) - top2
                if across > 1 and down > 1 and number != number2:  # lines of one text are the browser's own
                    found.append((one, other))
        return found

    def close(self):
        self._send("DELETE", self.session, None)

    def _send(self, method, path, given):
        data = None if given is None else json.dumps(given).encode()
        request = urllib.request.Request(self.place + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=WAIT) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            with error:
                raise AssertionError(json.load(error)["value"]["message"]) from None


@contextlib.contextmanager
def browser(folder):
    """Start a browser; fail with one sentence where there is none."""
    if not (shutil.which("chromium") and shutil.which("chromedriver")):
        pytest.fail(MISSING, pytrace=False)
    driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        for line in driver.stdout:
            if "on port " in line and "started successfully" in line:
                port = int(line.split("on port ")[1].strip().rstrip("."))
                break
        else:
            pytest.fail("chromedriver did not start", pytrace=False)
        time.sleep(0.1)
        window = Browser(f"http://127.0.0.1:{port}", folder)
        try:
            yield window
        finally:
            window.close()
    finally:
        driver.terminate()
        driver.wait(10)
        driver.stdout.close()
