#!/usr/bin/env python3
"""The chat page in a browser, driven by chromedriver: page.py DRIVER_URL SERVER_URL THINKER_URL CALLER_URL SEER_URL
FOLDER [SCREENSHOTS]. See test_command_page.sh.

Against peridot serve: send, stream, stop, retry, edit, reload, and their versions; a reply that is left, and another
tab; names, search, files; a full context; at THINKER_URL a model that thinks, at
CALLER_URL one that calls a tool, which leaves its arguments in FOLDER, at SEER_URL one that sees. And against a server
that hands out the same page, with the same policy, and answers with hostile text: whatever a model writes stays text.
SCREENSHOTS: a folder to leave some."""
import base64
import http.server
import json
import pathlib
import sys
import threading
import time
import urllib.request

HOSTILE = """# A title <script>window.hacked = 1</script>

<img src=x onerror="window.hacked = 2"> **bold <b>not</b>** and `code <i>` and [a link](javascript:window.hacked=3) and
[another](https://example.org/a(b)) ![an image](https://example.org/x.png)

```html
<script>window.hacked = 4</script>
```

- one
- two with https://example.org/path.
  1. nested

| a | b |
|---|---|
| <svg onload="window.hacked = 5"> | """ + "wide " * 80 + """|

""" + "endless" * 90 + "\n\n" + ">" * 5000 + "\n\n" + "- " * 5000 + """
</textarea></script><iframe srcdoc="<script>parent.hacked = 6</script>"></iframe>"""


class Browser:
    def __init__(self, driver):
        self.driver = driver
        options = {"args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                            "--window-size=1280,800"]}
        self.base = ""
        made = self.call("POST", "/session", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}}})
        self.base = "/session/" + made["sessionId"]

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.driver + self.base + path, data,
                                         {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return json.load(response)["value"]
        except urllib.error.HTTPError as error:
            sys.exit(f"{method} {path}: {error.read().decode()[:600]}")

    def open(self, url):
        self.call("POST", "/url", {"url": url})

    def js(self, script, *args):
        return self.call("POST", "/execute/sync", {"script": script, "args": list(args)})

    def in_page(self, script):
        """Runs until it calls done(): what would be over before a second command came."""
        self.call("POST", "/execute/async", {"script": "const done = arguments[0]; " + script, "args": []})

    def press(self, article, name):
        """A button at the foot of a message, by its text or label."""
        self.js("""[...document.querySelector(arguments[0]).querySelectorAll(".foot button")]
            .find(b => b.textContent === arguments[1] || b.ariaLabel === arguments[1]).click()""", article, name)

    def find(self, selector):
        found = self.call("POST", "/element", {"using": "css selector", "value": selector})
        return next(iter(found.values()))

    def click(self, selector):
        self.call("POST", f"/element/{self.find(selector)}/click", {})

    def type(self, selector, text):
        self.call("POST", f"/element/{self.find(selector)}/value", {"text": text})

    def cdp(self, command, **params):
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": params})

    def look(self, width, height, dark=False):
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                 mobile=width < 600)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.cdp("Emulation.setEmulatedMedia", features=[scheme])

    def shot(self, path):
        path.write_bytes(base64.b64decode(self.call("GET", "/screenshot")))

    def errors(self):
        lines = self.call("POST", "/se/log", {"type": "browser"})
        return [line["message"] for line in lines if line["level"] == "SEVERE"]

    def wait(self, what, script, seconds=300):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if value := self.js("return " + script):
                return value
            time.sleep(0.02)
        sys.exit(f"after {seconds} s there was not: {what}; the page says: "
                 + self.js("return document.body.innerText")[:800])


def need(truth, what):
    if not truth:
        sys.exit("page: " + what)


def need_quiet(b):
    """Of what has no page of ours Chromium asks for an icon."""
    errors = [error for error in b.errors() if "favicon" not in error]
    need(not errors, f"the browser's console: {errors}")


IDLE = "document.getElementById('stop').hidden"
ARTICLES = "document.querySelectorAll('article').length"
LAST = "document.querySelector('article:last-of-type .body').innerText"


def talk(b, url):
    b.open(url)
    b.js("localStorage.setItem('peridot.settings', JSON.stringify({ seed: 1 }))")   # a long reply
    b.open(url)
    b.wait("the model's name", "document.getElementById('model').textContent !== 'Peridot'")
    b.type("#text", "Once upon a time\ue007")   # Enter
    b.wait("the beginning of a reply", ARTICLES + " === 2 && " + LAST + ".length > 0")
    lengths = set()
    while not b.js("return " + IDLE):
        lengths.add(b.js(f"return {LAST}.length"))
    need(len(lengths) > 1, f"the reply did not stream: it was seen with lengths {lengths}")
    note = b.js("return document.querySelector('article:last-of-type .note').innerText")
    need("tokens/s" in note and "first token after" in note, "no speed is shown: " + note)

    # Retry; Stop once it writes
    b.js("settings.seed = 2")
    b.in_page("[...document.querySelectorAll('article:last-of-type .foot button')]"
              ".find(button => button.innerText === 'Retry').click();"
              f"const look = setInterval(() => {{ if ({LAST}.length === 0) return; clearInterval(look);"
              " document.getElementById('stop').click(); done(); }, 1);")
    b.wait("the end of the stopped reply", IDLE)
    note = b.js("return document.querySelector('article:last-of-type .foot').innerText")
    need("stopped · " in note and "tokens" in note, "a stopped reply does not say so, and how much it has: " + note)
    begun = b.js("return current.messages.at(-1).content")
    b.press("article:last-of-type", "Continue")
    b.wait("the end of the continued reply", IDLE + " && !current.messages.at(-1).before")
    whole = b.js("return current.messages.at(-1).content")
    need(whole.startswith(begun) and len(whole) > len(begun) and b.js(f"return {ARTICLES}") == 2,
         f"a stopped reply does not go on from {begun!r}: {whole!r}")
    before = b.js("return document.getElementById('log').innerText")
    b.open(url)
    b.wait("the conversation after loading anew", ARTICLES + " === 2")
    need(b.js("return document.getElementById('log').innerText") == before,
         "the conversation is another one after loading anew")

    b.press("article.user", "Edit")
    b.js("document.getElementById('edit-text').value = 'The little fox'")
    b.click("#edit button.main")
    b.wait("the answer to the edited message",
           IDLE + " && document.querySelector('article.user .body').innerText === 'The little fox'")
    b.click("#new")
    b.wait("a new conversation, which is empty", ARTICLES + " === 0")
    need(b.js("return document.querySelectorAll('#list li').length") == 1, "the list does not hold one conversation")
    b.in_page("""add_files([new File(["x"], "a.png", { type: "image/png" })]).then(done)""")
    need(b.js("return document.getElementById('images').hidden && document.getElementById('notice').innerText")
         == "This model sees no images.", "images may be sent to a model that sees none")
    need_quiet(b)


def upgrade(b, url):
    """What an earlier version kept is taken over, once no tab has that version open; and this one makes room, too."""
    first = b.call("GET", "/window")
    b.open(url + "health")
    b.call("POST", "/execute/async", {"script": """const done = arguments[0], request = indexedDB.open("peridot", 1);
        request.onupgradeneeded = () => {
            const c = { id: "1", title: "Old", system: "", changed: 1, messages: [{ role: "user", content: "x" }] };
            for (const name of ["conversations", "list"])
                request.result.createObjectStore(name, { keyPath: "id" }).put(c);
        };
        request.onsuccess = () => { window.old = request.result; done(); };""", "args": []})
    second = b.call("POST", "/window/new", {"type": "tab"})["handle"]
    b.call("POST", "/window", {"handle": second})
    b.open(url)
    b.wait("that another tab is in the way", "document.getElementById('notice').innerText.includes('earlier version')"
           " && models.length > 0")
    b.call("POST", "/window", {"handle": first})
    b.js("window.old.close()")
    b.call("POST", "/window", {"handle": second})
    b.wait("the conversation of the earlier version", "document.getElementById('list').innerText.includes('Old')"
           " && document.getElementById('notice').innerText === ''")
    b.call("POST", "/window", {"handle": first})
    b.js("indexedDB.deleteDatabase('peridot')")
    b.call("POST", "/window", {"handle": second})
    b.wait("that this page is in the way", "document.getElementById('notice').innerText.includes('later version')")
    b.call("DELETE", "/window")
    b.call("POST", "/window", {"handle": first})


def preset(b, url):
    """Settings have names, which a file of exported conversations has, too; new conversations have a system prompt."""
    fields = "['system', 'set-temperature', 'set-top_k'].map(id => document.getElementById(id).value).join('|')"
    names = "[...document.getElementById('preset').options].map(o => o.value).join()"
    chosen = "document.getElementById('preset').value"
    b.open(url)
    b.wait("the list", "document.querySelectorAll('#list li').length > 0")
    b.click("#new")
    b.wait("a new conversation", ARTICLES + " === 0")
    b.js("window.prompt = () => 'Brief'; window.confirm = () => true")
    b.click("#open-settings")
    b.js("for (const [id, value] of Object.entries(arguments[0])) document.getElementById(id).value = value",
         {"system": "Be brief.", "set-temperature": "7", "set-top_k": "", "system-default": "Be kind."})
    b.click("#preset-save")
    b.wait("that a temperature of 7 is refused", "document.activeElement.id === 'set-temperature'")
    b.js("document.getElementById('set-temperature').value = '0.25'")
    b.click("#preset-save")
    b.wait("the preset", f"{chosen} === 'Brief'")
    b.js("document.getElementById('system').value = ''")
    b.type("#set-temperature", "5")
    b.wait("that the settings are no preset", f"{chosen} === ''")
    b.js("document.getElementById('preset').value = 'Brief';"
         "document.getElementById('preset').dispatchEvent(new Event('change'))")
    b.wait("what the preset has", f"{fields} === 'Be brief.|0.25|' && {chosen} === 'Brief'")
    b.click("#settings .main")
    b.wait("the settings of the preset", "current.system === 'Be brief.' && settings.temperature === 0.25")
    b.click("#new")
    b.wait("the default system prompt", "current.system === 'Be kind.'")
    b.js("localStorage.removeItem('peridot.current')")
    b.open(url)
    b.wait("it after loading anew", "document.querySelectorAll('#list li').length > 0 && current.system === 'Be kind.'")
    b.js("window.confirm = () => true")
    b.js("URL.createObjectURL = blob => { blob.text().then(text => { window.exported = text; }); return 'data:,'; }")
    b.click("#export")
    exported = b.wait("the file", "window.exported")
    content = json.loads(exported)
    mine = {"name": "Brief", "system": "Be brief.", "think": "", "numbers": {"temperature": 0.25, "seed": 1}}
    need(content["presets"] == [mine] and content["conversations"], "presets are exported as " + exported[-300:])
    other = {**mine, "numbers": {"temperature": 9, "top_k": 3, "x": 1}}
    b.js("import_file(new File([arguments[0]], 'p.json'))",
         json.dumps({"conversations": [], "presets": [mine, other, other]}))
    b.wait("the imported preset", "(find_presets().then(all => { window.n = all.length; }), window.n === 2)")
    b.js("import_file(new File([arguments[0]], 'p.json'))", '{"conversations": [], "presets": [{"name": 1}]}')
    b.wait("that it is no such file", "document.getElementById('notice').innerText.includes('p.json')")
    b.click("#open-settings")
    ends = ("[...document.querySelectorAll('#settings > form > .note')].filter(p => p.offsetHeight).every(p => { const "
            "at = (i, n) => { const r = document.createRange(); r.setStart(p.firstChild, i); r.setEnd(p.firstChild, n); "
            "return r.getBoundingClientRect().left; }, n = p.firstChild.length; return at(n - 1, n) > at(0, 1); })")
    b.js("document.documentElement.dir = 'rtl'")
    need(b.js(f"return {ends}"), "full stops stand before their sentences where the page begins at the right")
    b.js("document.documentElement.dir = 'ltr'")
    b.wait("both presets", f"{names} === ',Brief,Brief (2)'")
    b.js("document.getElementById('preset').value = 'Brief (2)';"
         "document.getElementById('preset').dispatchEvent(new Event('change'))")
    b.wait("what the other has", f"{fields} === 'Be brief.||3'")
    b.click("#preset-delete")
    b.wait("one preset", f"{names} === ',Brief'")
    b.js("for (const id of ['system', 'system-default', 'set-temperature', 'set-top_k'])"
         " document.getElementById(id).value = ''")
    b.click("#settings .main")
    b.wait("no default system prompt", "current.system === '' && settings.system === ''")
    need_quiet(b)


def say_here(b, text):
    b.js("document.getElementById('text').value = arguments[0];"
         "document.getElementById('composer').requestSubmit()", text)


def part(b, url):
    """What is tried again or edited stays, as another version; also over a reload."""
    ways = "(document.querySelector('{} .ways .note')?.innerText ?? '')"
    users, last = ways.format("article.user"), ways.format("article:last-of-type")
    b.open(url)
    b.wait("the list", "document.querySelectorAll('#list li').length === 1")
    b.click("#list .open")
    b.wait("the conversation", ARTICLES + " === 2")
    need(b.js("return " + users) == "2 of 2", "an edited message has no other version: " + b.js("return " + users))
    b.press("article.user", "The version before")
    b.wait("the message before it was edited", "document.querySelector('article.user .body').innerText"
           " === 'Once upon a time'")
    need(b.js("return " + last) == "2 of 2", "a reply that was tried again has no other version")
    second = b.js("return " + LAST)
    b.press("article:last-of-type", "The version before")
    b.wait("the first reply", last + " === '1 of 2'")
    first = b.js("return " + LAST)
    need(first != second, "both versions are the same")
    b.press("article:last-of-type", "Edit")
    b.js("document.getElementById('edit-text').value = 'There was a *cat*.'")
    b.click("#edit button.main")
    b.wait("other words of the model's", f"{LAST} === 'There was a cat.' && {last} === '3 of 3' && {IDLE}")
    b.wait("that they are kept", "(window.kept ?? find(current.id).then(c => { window.kept = c; }), window.kept"
           "?.messages[1].content === 'There was a *cat*.')")
    b.open(url)
    b.wait("them after loading anew", f"{ARTICLES} === 2 && {LAST} === 'There was a cat.' && {last} === '3 of 3'")
    b.press("article:last-of-type", "The next version")
    b.wait("the first reply again", f"{LAST} === {json.dumps(first)}")


def leave(b, url):
    """A reply goes on when the page is left, and is there when it comes back; another tab sees it grow."""
    b.open(url)
    b.wait("the list", "document.querySelectorAll('#list li').length > 0")
    b.click("#new")
    b.wait("a new conversation", ARTICLES + " === 0")
    say_here(b, "The king said")
    b.wait("the beginning of a reply", f"{ARTICLES} === 2 && {LAST}.length > 10")
    seen = b.js("return " + LAST)[:10]
    b.open(url)
    b.wait("the reply that was left", f"{IDLE} && {ARTICLES} === 2 && {LAST}.length > 10")
    need(b.js("return " + LAST).startswith(seen), "the reply is another one after loading anew")
    note = b.js("return document.querySelector('article:last-of-type .foot').innerText")
    need("tokens" in note and "lost" not in note, "the end of the reply is not there: " + note)
    first = b.call("GET", "/window")
    b.js("settings.seed = 2")
    b.press("article:last-of-type", "Retry")
    second = b.call("POST", "/window/new", {"type": "tab"})["handle"]
    b.call("POST", "/window", {"handle": second})
    b.open(url)
    b.wait("the reply in another tab", f"{IDLE} && {ARTICLES} === 2 && {LAST}.length > 0"
           " && document.querySelector('.ways') !== null")
    there = b.js("return " + LAST)
    b.call("POST", "/window", {"handle": first})
    b.wait("the same in the first", f"{IDLE} && {ARTICLES} === 2 && {LAST} === {json.dumps(there)}")
    b.js("document.getElementById('new').click()")
    b.wait("a new conversation", ARTICLES + " === 0")
    say_here(b, "Tab one")
    b.wait("its reply", f"{IDLE} && {ARTICLES} === 2")
    b.call("POST", "/window", {"handle": second})
    b.wait("what the first tab has begun in the list of the second",
           "document.getElementById('list').innerText.includes('Tab one')")
    b.call("DELETE", "/window")
    b.call("POST", "/window", {"handle": first})
    need_quiet(b)


def manage(b, url, shots):
    """Two replies at once; names, pins, search, files; what is temporary."""
    b.open(url)
    b.wait("the list", "document.querySelectorAll('#list li').length === 3")
    ids = []
    for text in ["The bird", "The fish"]:
        b.js("document.getElementById('new').click()")
        b.wait("a new conversation", ARTICLES + " === 0")
        say_here(b, text)
        b.wait("a reply", ARTICLES + " === 2")
        ids.append(b.js("return current.id"))
    b.wait("both replies", "runs.size === 0")
    for id in ids:
        b.js("choose(arguments[0])", id)
        b.wait("a whole reply", f"current.id === '{id}' && {ARTICLES} === 2 && {LAST}.length > 0"
               " && document.querySelectorAll('#log .error').length === 0")
    b.js("document.querySelector('#list [aria-label=\"Manage The bird\"]').click();"
         "document.getElementById('manage-name').value = 'Zebra'; document.getElementById('manage-pin').checked = true")
    if shots:
        look_at(b, shots, "manage")
        b.look(1280, 800)
    b.type("#manage-name", "\ue007")   # Enter
    b.wait("the name, pinned", "document.querySelector('#list section li .open').innerText === 'Zebra'"
           " && document.querySelector('#list h2').innerText === 'Pinned'")
    b.js("document.getElementById('search').value = 'zeb'; document.getElementById('search')"
         ".dispatchEvent(new Event('input'))")
    b.wait("what is searched", "document.getElementById('list').innerText.split(/\\n+/).join() === 'Pinned,Zebra,⋯'"
           " || document.querySelectorAll('#list li').length === 1")
    b.js("document.getElementById('search').value = 'once upon'; document.getElementById('search')"
         ".dispatchEvent(new Event('input'))")
    b.wait("what is searched in messages", "document.querySelectorAll('#list li').length >= 1"
           " && !document.getElementById('list').innerText.includes('Zebra')")
    b.js("document.getElementById('search').value = ''; document.getElementById('search')"
         ".dispatchEvent(new Event('input'))")
    b.wait("all again", "document.querySelectorAll('#list li').length === 5")
    need(b.js("return as_markdown(current)").startswith("# The fish\n\n## You\n\nThe fish\n\n## Model\n\n"),
         "a conversation is exported as " + b.js("return as_markdown(current)")[:100])
    b.js("begin()")
    b.in_page("""add_files([new File(["a ``` b\\n"], "a.txt"), new File(["\\xff\\0"], "b.bin"),
        new File([new Uint8Array([255, 254])], "c.bin")]).then(done)""")
    need(b.js("return document.getElementById('images').innerText").startswith("a.txt")
         and b.js("return document.querySelectorAll('#images li').length") == 1, "text files are not attached")
    need("c.bin cannot be added" in b.js("return document.getElementById('notice').innerText"),
         "what is no text is not refused")
    say_here(b, "Read")
    b.wait("the answer about the file", f"{IDLE} && {ARTICLES} === 2")
    need(b.js("return to_messages(current.messages[0])[0].content")
         == "a.txt:\n\n````\na ``` b\n````\n\nRead", "the model gets the file as "
         + b.js("return JSON.stringify(current.messages[0])"))
    b.in_page("remove(current.id).then(done)")
    b.js("choose(arguments[0])", ids[1])
    b.wait("the conversation", f"current.id === '{ids[1]}'")
    exported = b.js("return as_markdown(current)")
    b.in_page("import_file(new File([as_json([current])], 'x.json')).then(done)")
    need(b.js("return as_markdown(current)") == exported, "a conversation is imported as another")
    b.wait("what was imported", f"document.querySelectorAll('#list li').length === 6 && {ARTICLES} === 2"
           f" && current.id !== '{ids[1]}' && current.title === 'The fish'")
    for bad in ['{"conversations": [{"messages": [{"role": "system", "content": "x"}]}]}', "[]", "{",
                '{"conversations": [{"messages": [{"role": "user", "content": {"x": 1}}]}]}']:
        b.js("import_file(new File([arguments[0]], 'x.json'))", bad)
        b.wait("that it is no such file", "document.getElementById('notice').innerText.includes('x.json')")
        b.js("notice('')")
    set_up(b, **{"set-temperature": "0.33", "set-top_p": "7"})
    need(b.js("return document.getElementById('settings').open"), "the settings take a top-p of 7")
    b.js("document.getElementById('set-top_p').value = ''")
    b.click("#settings .main")
    b.wait("a temperature of 0.33", "settings.temperature === 0.33 && settings.top_p === undefined")
    need(b.js("return document.getElementById('set-top_k').placeholder") == "40", "defaults are not shown")
    b.js("document.dispatchEvent(new KeyboardEvent('keydown', { key: 'k', ctrlKey: true }))")
    need(b.js("return document.activeElement.id") == "search", "Ctrl+K does not search")
    b.js("document.getElementById('new-temporary').click()")
    b.wait("a temporary conversation", ARTICLES + " === 0 && current.temporary")
    say_here(b, "A secret")
    b.wait("its reply", f"{IDLE} && {ARTICLES} === 2")
    b.open(url)
    b.wait("the list", "document.querySelectorAll('#list li').length === 6")
    need("A secret" not in b.js("return document.body.innerText"), "what is temporary is kept")
    need_quiet(b)


PAGE = """<meta charset="utf-8"><p>An <b>efficient</b> gr\u00fc\u00dfer, \u201cquoted\u201d<div>and the second line</div>
<p style="break-before: page">The last page"""
CONTENT = "BT /F 12 Tf 72 700 Td (A\\102 c\\)) Tj 0 -14 Td [(wor) -20 (d) -400 (next)] TJ 0 -40 Td <42> ' ET"


def pdf(pages, trailer="", font=""):
    """One of pages with those contents, by hand."""
    kids = " ".join(f"{10 + i} 0 R" for i in range(len(pages)))
    objects = [f"1 0 obj <</Type/Catalog /Pages 2 0 R>> endobj 2 0 obj <</Kids [{kids}] /Resources <</Font <</F 3 0 R>>"
               f" /XObject <</X 10 0 R>>>>>> endobj 3 0 obj <<{font}>> endobj"]
    for i, content in enumerate(pages):
        objects.append(f"{10 + i} 0 obj <</Contents {100 + i} 0 R /Subtype /Form>> endobj {100 + i} 0 obj <</Length "
                       f"{len(content)}>> stream\n{content}\nendstream endobj")
    return "%PDF-1.4\n" + "\n".join(objects) + f"\ntrailer <</Root 1 0 R {trailer}>>"


DIFFERENCES = "/Encoding <</Differences [65 /eacute /fi]>>"
PDFS = {   # what is read of a file, or what is said of it
    pdf([CONTENT], font=DIFFERENCES): "\u00e9fi c)\nword next\n\nfi",
    pdf([CONTENT, "% a picture"]): "no text can be read on 1 of 2 pages",
    pdf([CONTENT], font="/DescendantFonts [3 0 R]"): "cannot be added: its fonts do not say",
    pdf(["q 1 0 0 1 0 0 cm /X Do Q"]): "cannot be added: it has no text",
    pdf([CONTENT], "/Encrypt 4 0 R"): "cannot be added: it is encrypted",
    "%PDF-1.4\n": "cannot be added: it is damaged",
    pdf(["[" * 100000]): "cannot be added: its objects nest too deep",
    pdf(["BI ID " * 100000]): "cannot be added: it has no text",
}


def read_pdfs(b, url):
    """The text of PDF files, of Chromium's own and of others, and what cannot be read."""
    b.open("data:text/html;base64," + base64.b64encode(PAGE.encode()).decode())
    printed = b.cdp("Page.printToPDF")["data"]
    b.open(url)
    b.wait("the list", "document.querySelectorAll('#list li').length > 0 && models.length > 0")
    add = """add_files([new File([Uint8Array.from(atob('%s'), c => c.charCodeAt(0))], "a.pdf")]).then(done)"""
    read = "return take_texts().texts?.[0].text ?? ''"
    b.in_page(add % printed)
    text = b.js(read)
    need(text == "An efficient gr\u00fc\u00dfer, \u201cquoted\u201d\n\nand the second line\n\nThe last page",
         f"of a printed page is read {text!r}")
    for file, expected in PDFS.items():
        b.in_page(add % base64.b64encode(file.encode()).decode())
        said = b.js("return document.getElementById('notice').innerText") + b.js(read)
        need(expected in said, f"of {file[:300]!r} is said {said!r}, not {expected!r}")
    begin = time.monotonic()
    cut = base64.b64decode(printed)
    for end in range(0, len(cut), len(cut) // 40):
        b.in_page(add % base64.b64encode(cut[:end]).decode())
    need(time.monotonic() - begin < 10, "parts of a file take long")
    need_quiet(b)


def fill(b, url, shots):
    """A conversation that no longer fits the demo model's 512 tokens goes on without its oldest turns."""
    cut = "document.querySelector('#log > .cut')"
    above = f"[...document.querySelectorAll('article')].filter(a => a.compareDocumentPosition({cut}) & 4).length"
    b.open(url)
    b.wait("the list", "document.querySelectorAll('#list li').length > 0")
    b.js("document.getElementById('new').click()")
    b.wait("a new conversation", ARTICLES + " === 0")
    for turn in range(1, 4):
        say_here(b, "the lion " * 85)   # 170 tokens
        b.wait(f"the answer of turn {turn}", f"{IDLE} && {ARTICLES} === {2 * turn}")
        need(b.js("return document.querySelectorAll('#log .error').length") == 0, f"turn {turn} fails")
    need("no longer reads" in b.js(f"return {cut}?.innerText ?? ''"), "the page does not say that turns are left out")
    n = b.js("return " + above)
    need(n in (2, 4) and n == b.js("return document.querySelectorAll('article.dropped').length"),
         f"{n} messages are above the line")
    b.open(url)
    b.wait("the conversation", ARTICLES + " === 6")
    need(b.js("return " + above) == n, "the line is elsewhere after loading anew")
    b.js("document.getElementById('log').scrollTop = 0")
    for width, height, dark in [(320, 568, False), (360, 740, True), (1280, 800, False), (1280, 800, True)]:
        b.look(width, height, dark)
        need(b.js(f"return document.documentElement.scrollWidth <= {width}"),
             f"at {width} pixels the page scrolls sideways")
        b.js(f"{cut}.scrollIntoView({{ block: 'center' }})")
        if shots:
            b.shot(shots / f"page-full-{width}{'-dark' if dark else ''}.png")
    b.press("article:last-of-type", "Retry")
    b.wait("another reply", f"{IDLE} && {LAST}.length > 0")
    need(b.js("return " + above) == n, "the line is elsewhere after another try")
    b.press("article.user", "Edit")
    b.js("document.getElementById('edit-text').value = 'The little fox'")
    b.click("#edit button.main")
    b.wait("the answer to the edited message", f"{IDLE} && {ARTICLES} === 2")
    need(b.js(f"return {cut} === null"), "the line is still there where all fits")
    need_quiet(b)


CODE = ('<div class="code"><div class="bar"><span>%s</span><button type="button" class="plain">Copy</button></div>'
        '<pre tabindex="0" aria-label="Code"><code><span>%s</span></code></pre></div>')
MARKDOWN = {   # a reply, and what is drawn of it
    "a **b *c* `d`** _e_ ~~f~~ g": "<p>a <strong>b <em>c</em> <code>d</code></strong> <em>e</em> <del>f</del> g</p>",
    "2 * 3 * 4, a_b_c, ** x **, *y": "<p>2 * 3 * 4, a_b_c, ** x **, *y</p>",
    "`` a`b `` and `c`, **`d`**, ``e":
        "<p><code>a`b</code> and <code>c</code>, <strong><code>d</code></strong>, ``e</p>",
    "see [b](https://c.d/e(f)), [g] (h) or https://i.j/k.":
        '<p>see <a href="https://c.d/e(f)" rel="noopener noreferrer" target="_blank">b</a>, [g] (h) or '
        '<a href="https://i.j/k" rel="noopener noreferrer" target="_blank">https://i.j/k</a>.</p>',
    "# a # b ##\n|c|d|\n|:-:|--|\n|*e*|f|\n": '<h2>a # b</h2><div class="table" tabindex="0"><table><thead><tr>'
        '<th class="center">c</th><th>d</th></tr></thead><tbody><tr><td class="center"><em>e</em></td><td>f</td></tr>'
        "</tbody></table></div>",
    "***a*** \\*b\\* &auml;&#33; **c*d***  \ne\\\nf": "<p><em><strong>a</strong></em> *b* \u00e4! "
        "<strong>c<em>d</em></strong><br>e<br>f</p>",
    "a\n===\nb\n- - -\n---": "<h2>a</h2><p>b</p><hr><hr>",
    "1. a\n   - b\n\n     c\n2. d\n- [x] e\n- [ ] f": '<ol class="tight"><li><p>a</p><ul><li><p>b</p>'
        '<p>c</p></li></ul></li><li><p>d</p></li></ol><ul class="tight">'
        '<li><p><input type="checkbox" disabled="" aria-label="Done" checked=""> e</p></li>'
        '<li><p><input type="checkbox" disabled="" aria-label="Done"> f</p></li></ul>',
    "[a][b] ![c](https://d.e) [f](javascript:g)\n\n[B]: https://h.i 'j'": '<p><a href="https://h.i/" title="j" '
        'rel="noopener noreferrer" target="_blank">a</a> <a href="https://d.e/" rel="noopener noreferrer" '
        'target="_blank">c</a> f</p>',
    "(www.a.b) c@d.e <script>": '<p>(<a href="http://www.a.b/" rel="noopener noreferrer" target="_blank">www.a.b</a>) '
        '<a href="mailto:c@d.e" rel="noopener noreferrer" target="_blank">c@d.e</a> &lt;script&gt;</p>',
    "> a\nb\n\n    c\n": "<blockquote><p>a\nb</p></blockquote>" + CODE % ("", "c"),
    "~~~py\nif x: # y\n": CODE % ("py", '<span class="code-word">if</span> x: <span class="code-comment"># y</span>'),
}
SLOW = ["`x` [", "[", "](", "[a](", "**a ", "*a ", "_a ", "~~a ", "**a *b _c ~~d ", "http://.", "# ", "x\n", "x\n\n",
        "> ", "- a\n", "|", "` `` ``` ", "a|b\n|" + " " * 1000]


def mark_up(b, url):
    """Replies are drawn as Markdown, in time that is linear in their length: of these, any other takes minutes."""
    b.open(url)
    draw = "return marked_up(arguments[0]).innerHTML"
    stream = """const body = element("div"), text = markdown(body);
        for (const c of arguments[0]) { text.write(c); text.draw(); }
        return text.end().innerHTML;"""
    for text, html in MARKDOWN.items():
        drawn = b.js(draw, text)
        need(drawn == html, f"{text!r} is drawn as {drawn}")
        drawn = b.js(stream, text)
        need(drawn == html, f"{text!r} that comes in pieces is drawn as {drawn}")
    b.js("""const body = element("div"), text = markdown(body);
        text.write("*a*\\n\\n- b\\n- c"); text.draw();
        const there = [...body.querySelectorAll("em, li:first-child")];
        text.write("d\\n- e\\n\\nf"); text.draw(); text.end();
        window.stays = there.length === 2 && there.every(e => body.contains(e));""")
    need(b.js("return window.stays"), "what is finished of a reply is drawn anew")
    slowest = b.js("""const body = element("div"), text = markdown(body);
        let slowest = 0;
        for (let i = 0; i < 2000; i++) {
            text.write("Some *words* of `code`,\\n- an item and [a link](https://a.b)\\n\\n```c\\nint x = 1;\\n```\\n");
            const begin = performance.now();
            text.draw();
            if (i > 1900) slowest = Math.max(slowest, performance.now() - begin);
        }
        return slowest;""")
    print(f"a frame at the end of a reply of 170 kB: {slowest:.1f} ms")
    for piece in SLOW:
        begin = time.monotonic()
        b.js(draw, piece * (200000 // len(piece)) + "x")
        need(time.monotonic() - begin < 10, f"{piece!r} over and over takes {time.monotonic() - begin:.0f} s")


class Hostile(http.server.BaseHTTPRequestHandler):
    page = b""
    policy = ""

    def reply(self, kind, body):
        self.send_response(200)
        self.send_header("Content-Security-Policy", self.policy)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == "/":
            self.reply("text/html; charset=utf-8", self.page)
        else:
            self.reply("application/json", json.dumps({"data": [{"id": "<b>hostile</b>"}], "tools": True}).encode())

    def do_POST(self):
        """A call first, and then text."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        pieces = [HOSTILE[i:i + 7] for i in range(0, len(HOSTILE), 7)]
        events = [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces]
        if self.path.startswith("/tools/"):
            about = {"source": HOSTILE, "allowed": True}
            tools = [{"type": "function", "function": {"name": "x", "description": HOSTILE}}]
            called = self.path == "/tools/call"
            answer = {"result": HOSTILE} if called else {"tools": tools, "about": {"x": about}}
            return self.reply("application/json", json.dumps(answer).encode())
        if body["messages"][-1]["role"] == "user":
            call = {"index": 0, "id": "1", "function": {"name": "x", "arguments": HOSTILE + "\u202e"}}
            events = [{"choices": [{"delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}]
        text = "".join(f"data: {json.dumps(e)}\n\n" for e in events) + "data: [DONE]\n\n"
        self.reply("text/event-stream", text.encode())

    def log_message(self, *_):
        pass


def resist(b, shots):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hostile)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    b.open(f"http://127.0.0.1:{server.server_address[1]}/")
    b.wait("the tools", "tools.tools.length === 1")
    b.type("#text", "<script>window.hacked = 7</script> & <img src=x onerror='window.hacked = 8'>\ue007")
    b.wait("the end of the hostile reply", IDLE + " && " + ARTICLES + " === 3 && " + LAST + ".includes('iframe')")
    found = ("document.querySelectorAll('#log :is(script, img, svg, iframe, b, i, textarea, [onerror], [onload])')"
             ".length")
    need(b.js("return " + found) == 0, "text of the model became elements")
    need(b.js("return window.hacked ?? 0") == 0, "text of the model ran as a script")
    need(b.js("return [...document.querySelectorAll('#log a')].every(a => a.href.startsWith('https://example.org/'))"),
         "a link leads elsewhere")
    need(b.js("return document.querySelectorAll('#log :is(h2:not(.who), strong, li, table, pre)').length") >= 6,
         "Markdown is not shown")
    call = b.js("return document.querySelector('.call').textContent")
    need(call.count("<iframe srcdoc") == 3 and "\\u{202e}" in call, "a call is not shown as it is: " + call)
    b.js("document.querySelector('.call details').open = true; document.getElementById('open-settings').click()")
    need(b.js("return document.querySelectorAll('#tools-list :is(script, img, svg, iframe, b)').length") == 0
         and b.js("return document.getElementById('tools-list').textContent").count("<iframe srcdoc") == 2,
         "the list of tools is not shown as it is")
    b.js("document.getElementById('settings').close()")
    for width, height, dark in [(360, 740, False), (360, 740, True), (1280, 800, False), (1280, 800, True),
                                (3840, 2160, True)]:
        b.look(width, height, dark)
        need(b.js(f"return document.documentElement.scrollWidth <= {width}"),
             f"at {width} pixels the page scrolls sideways")
        if shots:
            b.shot(shots / f"page-{width}{'-dark' if dark else ''}.png")
    if shots:
        b.look(360, 740)
        b.click("#menu")
        b.shot(shots / "page-360-menu.png")
        b.js("document.body.classList.remove('menu')")
        b.click("#open-settings")
        b.shot(shots / "page-360-settings.png")
    b.look(1280, 800)
    need_quiet(b)


def think(b, url):
    """What the model thought is folded, over its answer."""
    thought = "document.querySelector('article:last-of-type .thought')"
    b.open(url)
    b.wait("the model's name", "document.getElementById('model').textContent === 'thinker'")
    b.type("#text", "hello\ue007")
    b.wait("the answer", IDLE + " && " + LAST + " === 'hello model'")
    need(b.js(f"return {thought}.checkVisibility() && !{thought}.open"), "the thought is not folded")
    need(b.js(f"return {thought}.lastElementChild.textContent") == "us user", "the thought is another")
    b.click(".thought summary")
    need(b.js(f"return {thought}.lastElementChild.innerText") == "us user", "the thought does not unfold")
    need("tokens of thought" in b.js("return document.querySelector('article:last-of-type .note').innerText"),
         "tokens of thought are not counted")
    b.type("#text", "hello\ue007")
    b.wait("the second answer", IDLE + " && " + ARTICLES + " === 4 && " + LAST + " === 'hello model'")
    need(b.js("return [...document.querySelectorAll('article.user .thought')].length") == 0, "a user thinks")


def set_up(b, **values):
    """In the settings."""
    b.click("#open-settings")
    for key, value in values.items():
        b.js("document.getElementById(arguments[0]).value = arguments[1]", key, value)
    b.click("#settings .main")


def adapt(b, url):
    """An adapter of the model is chosen in the settings."""
    answers = {}
    b.open(url)
    b.wait("the model's name", "document.getElementById('model').textContent === 'model'")
    for i, name in enumerate(["", "first", "second"]):
        set_up(b, adapter=name, **{"set-temperature": "0", "set-max_tokens": "12"})
        b.wait("the adapter's name", "document.getElementById('model').textContent === "
               + json.dumps("model" + (name and " · " + name)))
        b.click("#new")
        b.wait("a new conversation", ARTICLES + " === 0")
        b.type("#text", "abc\ue007")
        b.wait("the answer", IDLE + " && " + ARTICLES + " === 2")
        answers[name] = b.js("return " + LAST)
    need(len(set(answers.values())) == 3, f"adapters change nothing: {answers}")
    need(b.js("return [...document.getElementById('adapter').options].map(o => o.value).join()") == ",first,second",
         "the settings have other adapters")


QUESTION = "document.querySelector('.question')"
STATE = "[...document.querySelectorAll('.call summary .note')].map(n => n.innerText.split(' · ').at(-1)).join()"


def say(b, text, articles, seconds=300):
    """Until the model calls, or has answered."""
    b.type("#text", text + "\ue007")
    b.wait("a call or an answer", f"{ARTICLES} === {articles} && ({QUESTION} !== null || {IDLE})", seconds)


def choose(b, answer, articles, state):
    b.click(f".question button:nth-child({['once', 'always', 'no'].index(answer) + 1})")
    b.wait("the answer", f"{IDLE} && {ARTICLES} === {articles} && {LAST} === 'hello model'")
    need(b.js("return " + STATE) == state, f"calls are {b.js('return ' + STATE)}, not {state}")


def look_at(b, shots, name):
    for width, height, dark in [(390, 740, False), (390, 740, True), (1280, 800, False), (1280, 800, True)]:
        b.look(width, height, dark)
        need(b.js(f"return document.documentElement.scrollWidth <= {width}"),
             f"at {width} pixels the page scrolls sideways")
        if shots:
            b.js("document.getElementById('log').scrollTop = 1e6")
            b.shot(shots / f"page-{name}-{width}{'-dark' if dark else ''}.png")


def call_tools(b, url, folder, shots):
    """The model calls add(a=2, b=40), and says "hello model" when it has the result. Where there is a file "slow", the
    tool leaves its process in it, and takes a minute."""
    made, slow = folder / "arguments", folder / "slow"
    n_made = lambda: len(made.read_text().splitlines()) if made.exists() else 0
    b.open(url)
    b.wait("the model's name", "document.getElementById('model').textContent === 'caller'")
    say(b, "hello", 2)
    need(n_made() == 0, "a tool is called before the answer to the question")
    call = b.js("return document.querySelector('.call').innerText")
    need("add" in call and "program sh" in call and '"b": 40' in call, "the question does not show the call: " + call)
    look_at(b, shots, "question")
    choose(b, "once", 3, "called")
    need(n_made() == 1, "a tool is not called")
    need(b.js("return document.querySelector('.call details').open") is False, "a call is not folded")
    need(b.js("return document.querySelector('.call pre:last-of-type').textContent") == "42", "the result is not there")
    say(b, "hello", 5)
    need(b.js(f"return {QUESTION} !== null"), "what was allowed once is called again")
    choose(b, "always", 6, "called,called")
    say(b, "hello", 9)
    need(n_made() == 3 and b.js("return " + IDLE), "what is always allowed is asked for")
    b.press("article:last-of-type", "Retry")
    b.wait("the turn again", f"{IDLE} && {ARTICLES} === 9 && {LAST} === 'hello model'")
    need(n_made() == 4, "another try is not one of the whole turn")
    before = b.js("return document.getElementById('log').innerText")
    b.open(url)
    b.wait("the conversation after loading anew", ARTICLES + " === 9")
    need(b.js("return document.getElementById('log').innerText") == before,
         "the conversation is another one after loading anew")

    b.click("#new")
    b.wait("a new conversation", ARTICLES + " === 0")
    say(b, "hello", 2)
    need(b.js(f"return {QUESTION} !== null"), "what is allowed in a conversation is in another")
    choose(b, "no", 3, "denied")
    need(n_made() == 4, "what is denied is called")
    slow.write_text("")
    say(b, "hello", 5)
    b.click(".question button")
    b.wait("the call", STATE + " === 'denied,runs …'")
    end = time.monotonic() + 30
    while not slow.read_text() and time.monotonic() < end:
        time.sleep(0.02)
    look_at(b, shots, "call")
    b.click("#stop")
    b.wait("the end of the call", IDLE + f" && {STATE} === 'denied,stopped'")
    pid = int(slow.read_text())
    while pathlib.Path(f"/proc/{pid}").exists() and time.monotonic() < end:
        time.sleep(0.02)
    need(not pathlib.Path(f"/proc/{pid}").exists(), "Stop does not end the program")
    slow.unlink()
    say(b, "hello", 7)   # which this model answers at once, as a call has a result: that it was stopped
    need(b.js("return " + LAST) == "hello model", "a conversation with a stopped call does not go on")
    say(b, "hello", 9)
    b.click("#stop")
    b.wait("the end of the question", f"{IDLE} && {QUESTION} === null && {STATE} === 'denied,stopped,stopped'")
    say(b, "hello", 11)
    need(b.js("return " + LAST) == "hello model" and n_made() == 4, "nor one with a question that was stopped")

    b.click("#open-settings")
    need("add program sh" in " ".join(b.js("return document.getElementById('tools-list').textContent").split())
         .replace("addprogram", "add program"), "the settings do not list the tools")
    b.js("document.querySelector('#tools-box details').open = true")
    look_at(b, shots, "tools")
    b.js("document.getElementById('tools').value = 'off'; document.getElementById('settings').close()")
    say(b, "hello", 13)
    need(b.js("return " + STATE) == "denied,stopped,stopped", "the model calls tools that are off")
    need_quiet(b)


PICTURES = "[...document.querySelectorAll('#images img')]"
SHOWN = "[...document.querySelectorAll('article .images img')]"


def hand_over(b, event, pictures):
    """Drops or pastes pictures, which are a file's name and a size to be painted."""
    b.in_page("""(async () => {
        const transfer = new DataTransfer();
        for (const [name, type, width, height] of """ + json.dumps(pictures) + """) {
            const canvas = new OffscreenCanvas(width, height), context = canvas.getContext("2d");
            for (const [i, colour] of ["#a33", "#3a3", "#33a", "#aa3"].entries()) {
                context.fillStyle = colour;
                context.fillRect(i % 2 * width / 2, (i >> 1) * height / 2, width / 2, height / 2);
            }
            transfer.items.add(new File([await canvas.convertToBlob({ type })], name, { type }));
        }
        const event = """ + {
            "paste": 'new ClipboardEvent("paste", { clipboardData: transfer, bubbles: true, cancelable: true })',
            "drop": 'new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true })'}[event] + """;
        document.getElementById("text").dispatchEvent(event);
        done();
    })()""")


def see(b, url, golden, shots):
    """Images are chosen, pasted and dropped, removed, sent, shown and kept; where the model sees."""
    b.open(url)
    b.js("localStorage.setItem('peridot.settings', JSON.stringify({ max_tokens: 24 }))")
    b.open(url)
    b.wait("a model that sees", "!document.getElementById('attach').hidden")
    b.type("#files", f"{golden / 'image-1.png'}\n{golden / 'image-2.png'}")
    b.wait("chosen images", PICTURES + ".length === 2")
    hand_over(b, "paste", [("small.png", "image/png", 300, 200)])
    b.wait("a pasted image", PICTURES + ".length === 3")
    hand_over(b, "drop", [("photograph.jpg", "image/jpeg", 4000, 3000), ("notes.txt", "text/plain", 1, 1)])
    b.wait("a dropped image", PICTURES + ".length === 4")
    sizes = b.js(f"return {PICTURES}.map(i => i.naturalWidth + ' ' + i.naturalHeight + ' '"
                 " + i.src.match(/^data:image.(.*?);/)[1])")
    need(sizes == ["96 96 png", "96 96 png", "300 200 png", "2048 1536 jpeg"], "images are " + str(sizes))
    look_at(b, shots, "images-composer")
    b.click("#images li:nth-child(2) button")
    need(b.js(f"return {PICTURES}.length") == 3, "an image cannot be removed")
    b.type("#text", "What is this?\ue007")
    b.wait("the answer", f"{IDLE} && {ARTICLES} === 2")
    need(b.js("return document.querySelectorAll('#log .error').length") == 0,
         "a message with images fails: " + b.js("return document.getElementById('log').innerText"))
    need(b.js(f"return {PICTURES}.length") == 0 and b.js(f"return {SHOWN}.length") == 3,
         "images are not in their message")
    shapes = b.js(f"return {SHOWN}.map(i => i.width / i.height * i.naturalHeight / i.naturalWidth)")
    need(all(abs(shape - 1) < 0.02 for shape in shapes), "images are distorted: " + str(shapes))
    look_at(b, shots, "images")
    b.click("article .images button")
    size = b.js("const i = document.querySelector('#picture[open] img'); return [i?.naturalWidth, i?.src.length > 99]")
    need(size == [96, True], f"an image is not enlarged: {size}")
    b.type("body", "\ue00c")   # Escape
    b.wait("that it is closed", "document.querySelector('#picture[open]') === null")
    b.open(url)
    b.wait("the conversation after loading anew", f"{ARTICLES} === 2 && {SHOWN}.length === 3")
    b.press("article.user", "Edit")
    b.js("document.getElementById('edit-text').value = 'And this?'")
    b.click("#edit button.main")
    b.wait("the answer to the edited message",
           f"{IDLE} && document.querySelector('article.user .body').innerText === 'And this?'")
    need(b.js(f"return {SHOWN}.length") == 3, "an edited message loses its images")

    b.click("#new")   # no room: the text is kept, and that there was an image
    b.wait("a new conversation", ARTICLES + " === 0")
    b.js("""const put = IDBObjectStore.prototype.put;
        IDBObjectStore.prototype.put = function (c) {
            if (JSON.stringify(c).length > 20000) throw new DOMException("", "QuotaExceededError");
            return put.call(this, c);
        };""")
    hand_over(b, "drop", [("wide.png", "image/png", 1500, 900)])   # of 40,000
    b.wait("the image", PICTURES + ".length === 1")
    b.type("#text", "Again\ue007")
    b.wait("the answer", f"{IDLE} && {ARTICLES} === 2")
    need("no room" in b.js("return document.getElementById('notice').innerText"),
         "nothing says that images are not kept")
    b.open(url)
    b.wait("the conversation without its image",
           f"{ARTICLES} === 2 && document.querySelector('article.user').innerText.includes('An image was here')")
    b.click("#open-settings")
    need(b.js("return document.getElementById('sees').checkVisibility()"),
         "the settings do not say that the model sees")
    look_at(b, shots, "images-settings")
    b.js("document.getElementById('settings').close()")
    need_quiet(b)


def main():
    driver, server, thinker, caller, seer, adapted, folder = sys.argv[1:8]
    with urllib.request.urlopen(server) as response:
        Hostile.page = response.read()
        Hostile.policy = response.headers["Content-Security-Policy"]
    b = Browser(driver)
    try:
        shots = pathlib.Path(sys.argv[8]) if len(sys.argv) > 8 else None
        upgrade(b, server)
        talk(b, server)
        preset(b, server)
        part(b, server)
        leave(b, server)
        manage(b, server, shots)
        read_pdfs(b, server)
        fill(b, server, shots)
        mark_up(b, server)
        resist(b, shots)
        think(b, thinker)
        adapt(b, adapted)
        call_tools(b, caller, pathlib.Path(folder), shots)
        see(b, seer, pathlib.Path(__file__).resolve().parent / "golden/gemma3-vision", shots)
    finally:
        b.call("DELETE", "")


if __name__ == "__main__":
    main()
