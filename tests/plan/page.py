"""The page of `nnc plan --format html`: its structure, and its behaviour in headless Chromium.

    page.py --nnc build/nnc MODEL [--keep FOLDER]

Two pages are made: of the model, and of a random problem with 5,000 tensors.  The browser's part needs chromium,
chromium-driver and python3-selenium and is skipped, visibly, where one of them is absent.  --keep leaves the pages and
their screenshots in a folder, for looking at.
"""

import argparse
import html.parser
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import zlib

WINDOW = (1440, 900)


class Page(html.parser.HTMLParser):
    """Collects what the page would load, its embedded data and its title."""

    def __init__(self, text):
        super().__init__()
        self.loads, self.data, self.title, self.inside = [], "", "", None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.loads += [attributes[key] for key in ("src", "href", "data", "action") if key in attributes]
        self.inside = "data" if attributes.get("type") == "application/json" else tag if tag == "title" else None

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, text):
        if self.inside:
            setattr(self, self.inside, getattr(self, self.inside) + text)


def random_problem(path, count):
    chance = random.Random(7)
    with open(path, "w", encoding="utf-8") as out:
        out.write("id,lower,upper,size\n")
        for i in range(count):
            lower = chance.randrange(count)
            out.write(f"layer{i % 97}.t{i},{lower},{lower + 1 + int(chance.expovariate(1 / 30))},{64 * chance.randrange(1, 400)}\n")


def nnc(command, *arguments):
    return subprocess.run([command, "plan", *arguments], check=True, capture_output=True, text=True).stdout


def check_structure(page, data):
    found = Page(page)
    assert not found.loads, f"loads {found.loads}"
    assert not re.search(r"@import|url\(|https?:", page.replace(found.data, "")), "names something outside"
    assert json.loads(found.data) == data, "the embedded plan is another"
    assert found.title == f"{data['title']}: memory plan", found.title


# What a browser shows.


def open_browser():
    """A headless Chromium, or None with the reason."""
    try:
        from selenium import webdriver
        from selenium.common.exceptions import WebDriverException
    except ImportError:
        return None, "needs python3-selenium"
    if not shutil.which("chromium") or not shutil.which("chromedriver"):
        return None, "needs chromium and chromium-driver"
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                 "--force-device-scale-factor=1", f"--window-size={WINDOW[0]},{WINDOW[1]}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.chrome.service.Service(shutil.which("chromedriver"))
    try:
        return webdriver.Chrome(options=options, service=service), ""
    except WebDriverException as error: # no loopback, no shared memory: a sandbox, not a fault of the page
        return None, f"chromium does not start: {error.msg.splitlines()[0]}"


def settle(browser):
    """Waits until the page has drawn what was asked for."""
    browser.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done))")


def point_at(browser, place):
    from selenium.webdriver.common.action_chains import ActionChains

    actions = ActionChains(browser)
    actions.w3c_actions.pointer_action.move_to_location(round(place["x"]), round(place["y"]))
    actions.perform()
    settle(browser)


def text_of(browser, selector):
    return browser.execute_script("return document.querySelector(arguments[0]).innerText", selector)


def pixels(png):
    """The rows of an 8-bit RGB or RGBA PNG, as the pixels' bytes."""
    at, packed, depth = 8, b"", 3
    while at < len(png):
        size, kind = int.from_bytes(png[at : at + 4], "big"), png[at + 4 : at + 8]
        chunk = png[at + 8 : at + 8 + size]
        if kind == b"IHDR":
            width, depth = int.from_bytes(chunk[:4], "big"), {2: 3, 6: 4}[chunk[9]]
        packed += chunk if kind == b"IDAT" else b""
        at += 12 + size
    raw, stride, rows = zlib.decompress(packed), width * depth, []
    before = bytearray(stride)
    for begin in range(0, len(raw), stride + 1):
        row = bytearray(raw[begin + 1 : begin + 1 + stride])
        unfilter(row, before, raw[begin], depth)
        rows.append(row)
        before = row
    return rows, depth


def unfilter(row, above, kind, depth):
    for i in range(len(row) if kind else 0):
        a, b, c = row[i - depth] if i >= depth else 0, above[i], above[i - depth] if i >= depth else 0
        paeth = min((abs(b - c), 0, a), (abs(a - c), 1, b), (abs(a + b - 2 * c), 2, c))[2]
        row[i] = (row[i] + (0, a, b, (a + b) // 2, paeth)[kind]) & 255


def colours_in(png):
    """How often each colour stands in every third pixel of every third row."""
    count = {}
    rows, depth = pixels(png)
    for row in rows[::3]:
        for x in range(0, len(row), 3 * depth):
            colour = bytes(row[x : x + 3])
            count[colour] = count.get(colour, 0) + 1
    return count


class Session:
    """One page in the browser, with the plan that it shows."""

    def __init__(self, browser, path, data):
        self.browser, self.path, self.data = browser, path, data
        rows = [t for t in data["tensors"] if t["bytes"] and "alias_of" not in t]
        self.step = data["fullest_step"]["step"]
        self.live = [t for t in rows if t["first"] <= self.step <= t["last"]]
        self.largest = max(self.live, key=lambda t: t["bytes"])

    def load(self):
        self.browser.get(self.path.as_uri())
        settle(self.browser)
        assert self.data["title"] in text_of(self.browser, "h1")
        assert f"{self.data['fullest_step']['bytes']:,} B" in text_of(self.browser, "#heading"), "the sum at the peak"
        assert f"{len(self.live):,} tensor" in text_of(self.browser, "#heading"), "the number of tensors at the peak"
        assert self.browser.execute_script("return document.querySelectorAll('*').length") < 600, "an element per tensor"

    def hover(self):
        t = self.largest
        place = self.browser.execute_script(  # its middle, brought near where it is small; not under an heir
            "const t = byName.get(arguments[0]), tall = t.bytes * 3;"
            "setView({t0: t.first - 1, t1: t.first + 5, a0: Math.max(0, t.offset - t.bytes), a1: t.offset + tall});"
            "return {...planLocate(t.name), x: canvas.getBoundingClientRect().left + xOf(t.first + 0.5)}", t["name"])
        point_at(self.browser, place)
        card = text_of(self.browser, "#card")
        for expected in [t["name"], t["type"], f"{t['bytes']:,}", f"{t['offset']:,} to", "First use", "Last use"]:
            assert expected in card, f"{expected!r} is not in {card!r}"
        if self.data["steps"]:
            assert self.data["steps"][t["last"]] in card, "the kernel that uses it last"
        if "reuses" in t:
            assert t["reuses"] in card, "whose memory it takes over"
        for heir in [other["name"] for other in self.data["tensors"] if other.get("reuses") == t["name"]][:1]:
            assert heir in card, "who takes it over"
        between = [step for step in t.get("uses", []) if t["first"] < step < t["last"]]
        assert ("Then used by" in card) == bool(between), "the steps between"
        assert f"{100 * t['bytes'] / self.data['fullest_step']['bytes']:.0f} %" in card, "its share of the peak"

    def cursor(self):
        from selenium.webdriver.common.keys import Keys

        body = self.browser.find_element("tag name", "body")
        body.send_keys(Keys.ESCAPE, "p", ".")
        settle(self.browser)
        step = self.step + 1
        live = sum(t["first"] <= step <= t["last"] and t["bytes"] > 0 and "alias_of" not in t for t in self.data["tensors"])
        heading = text_of(self.browser, "#heading")
        assert (f"({step})" in heading or f"step {step:,}" in heading) and f"{live:,} tensor" in heading, heading
        body.send_keys(Keys.ESCAPE)

    def click(self):
        """A click holds the cursor and the tensor under it; escape lets go."""
        from selenium.webdriver.common.action_chains import ActionChains
        from selenium.webdriver.common.keys import Keys

        self.hover()
        ActionChains(self.browser).click().perform()
        settle(self.browser)
        assert self.browser.execute_script("return state.cursorHeld && state.held.name") == self.largest["name"]
        heading = text_of(self.browser, "#heading")
        assert heading.startswith("At "), heading
        self.browser.find_element("tag name", "body").send_keys(Keys.ESCAPE)
        assert self.browser.execute_script("return !state.cursorHeld && !state.held && document.getElementById('card').hidden")
        self.browser.execute_script("setView(everything())")

    def list(self):
        """The list of what is live at the peak: largest first, by keyboard, and it shows what it tells of."""
        from selenium.webdriver.common.action_chains import ActionChains
        from selenium.webdriver.common.keys import Keys

        settle(self.browser)
        names = self.browser.execute_script("return listed.map((t) => t.name)")
        assert names == [t["name"] for t in sorted(self.live, key=lambda t: -t["bytes"])], names[:5]
        self.browser.execute_script("const row = document.querySelector('#list .row'); row.focus(); row.click()")
        assert names[0] in text_of(self.browser, "#card")
        for _ in range(min(30, len(names))):
            ActionChains(self.browser).send_keys(Keys.ARROW_DOWN).perform()
        focused = self.browser.execute_script("return document.activeElement.title")
        assert focused == names[min(30, len(names) - 1)], f"{focused} has the focus"
        assert focused in text_of(self.browser, "#card"), "the story of the row with the focus"
        ActionChains(self.browser).send_keys(Keys.ESCAPE).perform()

    def legend(self):
        """Colours are parts of the model; a click on one shows its tensors alone."""
        chips = self.browser.find_elements("css selector", "#legend button")
        assert len(self.data["scopes"]) >= 2 and len(chips) >= 2, "no legend"
        self.browser.execute_script("setMode('all')")
        chips[0].click()
        settle(self.browser)
        count = sum(t.get("scope") == 0 for t in self.data["tensors"])
        assert f"{count:,} tensor" in text_of(self.browser, "#heading"), text_of(self.browser, "#heading")
        chips[0].click()
        self.browser.execute_script("setMode('peak')")

    def filter(self):
        word = self.largest["name"]
        self.browser.execute_script("setMode('all')")
        self.browser.find_element("id", "filter").send_keys(word)
        settle(self.browser)
        expected = sum(word.lower() in t["name"].lower() and t["bytes"] > 0 and "alias_of" not in t for t in self.data["tensors"])
        assert f"{expected:,} tensor" in text_of(self.browser, "#heading"), text_of(self.browser, "#heading")
        assert word in text_of(self.browser, "#list"), "the list lacks it"
        self.browser.find_element("id", "filter").clear()

    def zoom(self):
        span = "return view.t1 - view.t0"
        self.browser.execute_script("setView(everything())")
        before = self.browser.execute_script(span)
        self.browser.execute_script("canvas.dispatchEvent(new WheelEvent('wheel', {deltaY: -240, cancelable: true}))")
        zoomed = self.browser.execute_script(span)
        assert zoomed < before, "the wheel does not zoom in"
        for button, narrower in (("nearer", True), ("farther", False)):
            self.browser.find_element("id", button).click()
            assert (self.browser.execute_script(span) < zoomed) == narrower, button
            zoomed = self.browser.execute_script(span)
        self.browser.find_element("tag name", "body").send_keys("0")
        self.wait_for("Math.abs(view.t1 - everything().t1) < 1e-6 && view.t0 === firstStep", "0 does not show everything")

    def pan(self):
        from selenium.webdriver.common.action_chains import ActionChains

        self.browser.execute_script("setView({t0: firstStep, t1: firstStep + 4, a0: 0, a1: shown.height})")
        canvas = self.browser.find_element("id", "picture")
        ActionChains(self.browser).drag_and_drop_by_offset(canvas, -150, 0).perform()
        settle(self.browser)
        assert self.browser.execute_script("return view.t0 > firstStep && !state.cursorHeld"), "a drag does not move the picture"
        self.browser.execute_script("letGo(); setView(everything())")

    def peak(self):
        """The fullest step is marked in red, with its kernel's name in the picture."""
        drawn = self.browser.execute_script(
            "const seen = [], original = screen.fillText;"
            "screen.fillText = layer.fillText = function (text) { seen.push(text); };"
            "painted = ''; paint(); delete screen.fillText; delete layer.fillText; painted = ''; paint(); return seen")
        kernel = self.data["blame"]["kernel"] or f"step {self.step:,}"
        assert any(text.startswith(kernel) and text.endswith("live") for text in drawn), drawn[-8:]
        wanted = "peak = lower bound" if not self.data["gap"] else "gap"
        assert any(wanted in text for text in drawn), drawn[-8:]

    def scale(self):
        """The labels of the axis end in no idle zeros, and lose none of a whole number."""
        sizes = {640: "640 B", 1000: "1000 B", 2048: "2 KiB", 2560: "2.5 KiB", 1280: "1.25 KiB", 102400: "100 KiB", 20 << 30: "20 GiB"}
        shown = self.browser.execute_script("return arguments[0].map(roundBytes)", list(sizes))
        assert shown == list(sizes.values()), shown

    def phone(self):
        """On a narrow screen everything lies below one another and nothing sticks out; two fingers zoom."""
        size = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.browser.get(self.path.as_uri())
        settle(self.browser)
        try:
            assert self.browser.execute_script("return document.documentElement.scrollWidth") <= 390, "sticks out"
            assert self.browser.execute_script("return canvas.clientHeight") > 300, "no room for the picture"
            span = self.browser.execute_script(
                "const touch = (type, id, x) => canvas.dispatchEvent(new PointerEvent(type, {pointerId: id, clientX: x,"
                "  clientY: canvas.getBoundingClientRect().top + 150, isPrimary: id === 1}));"
                "canvas.setPointerCapture = () => {};"
                "touch('pointerdown', 1, 150); touch('pointerdown', 2, 250); touch('pointermove', 2, 350);"
                "touch('pointerup', 1, 150); touch('pointerup', 2, 350); return (view.t1 - view.t0) / (lastStep - firstStep)")
            assert span < 0.7, f"two fingers show {span:.2f} of the time"
        finally:
            self.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

    def wait_for(self, condition, what):
        from selenium.webdriver.support.ui import WebDriverWait

        WebDriverWait(self.browser, 10).until(lambda browser: browser.execute_script("return " + condition), what)

    def picture(self, keep):
        """Light and dark differ, and neither is blank: blocks of several colours beside the paper."""
        papers = []
        for scheme in ("light", "dark"):
            self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia",
                                         {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
            self.browser.get(self.path.as_uri())
            settle(self.browser)
            png = self.browser.get_screenshot_as_png()
            if keep:
                (keep / f"{self.path.stem}-{scheme}.png").write_bytes(png)
            count = colours_in(png)
            paper = max(count, key=count.get)
            papers.append(sum(paper))
            many = [c for c in count if c != paper and count[c] > 100]
            assert len(many) >= 4, f"{scheme}: {len(many)} colours"
        assert papers[0] > 600 and papers[1] < 150, f"papers {papers}"

    def errors(self):
        log = [entry["message"] for entry in self.browser.get_log("browser") if entry["level"] == "SEVERE"]
        assert not log, log


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nnc", required=True, type=os.path.abspath)
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("model", type=os.path.abspath)
    arguments = parser.parse_args()
    results, failed = [], 0

    def check(name, action):
        nonlocal failed
        try:
            action()
            print(f"ok {len(results) + 1} - {name}", flush=True)
        except Exception as error:  # a browser that dies is a failure as well
            failed += 1
            print(f"not ok {len(results) + 1} - {name}\n# " + str(error).replace("\n", "\n# "), flush=True)
        results.append(name)

    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.keep or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        random_problem(folder / "random.csv", 5000)
        os.chdir(folder)
        data = {"model": json.loads(nnc(arguments.nnc, arguments.model, "--format", "json"))}
        paths = {name: (folder / f"{name}.html").resolve() for name in ("model", "random")}
        paths["model"].write_text(nnc(arguments.nnc, arguments.model, "--format", "html"))
        paths["random"].write_text(nnc(arguments.nnc, "--problem", "random.csv", "--format", "html"))
        # Of a bare problem the JSON is another; its page is compared with that.
        data["random"] = json.loads(Page(paths["random"].read_text()).data)
        check("model: structure", lambda: check_structure(paths["model"].read_text(), data["model"]))
        check("random: structure", lambda: check_structure(paths["random"].read_text(), data["random"]))
        offsets = json.loads(nnc(arguments.nnc, "--problem", "random.csv", "--format", "json"))["offsets"]
        check("random: offsets", lambda: same_offsets(data["random"], offsets))
        browser, why = open_browser()
        steps = ["load", "peak", "scale", "hover", "cursor", "click", "list", "legend", "filter", "zoom", "pan", "picture", "phone", "errors"]
        for name in paths if browser else []:
            session = Session(browser, paths[name], data[name])
            for step in steps:
                given = [arguments.keep] if step == "picture" else []
                check(f"{name}: {step}", lambda act=getattr(session, step), given=given: act(*given))
        if browser:
            browser.quit()
        else:
            for name in [f"{name}: {step}" for name in paths for step in steps]:
                results.append(name)
                print(f"ok {len(results)} - {name} # SKIP {why}")
    print(f"1..{len(results)}")
    return 1 if failed else 0


def same_offsets(data, offsets):
    assert {t["name"]: t["offset"] for t in data["tensors"]} == offsets, "the page places tensors elsewhere"
    assert len(offsets) == 5000


if __name__ == "__main__":
    sys.exit(main())
