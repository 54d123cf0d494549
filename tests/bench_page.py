#!/usr/bin/env python3
"""The pages of peridot bench in a browser: bench_page.py DRIVER_URL MANY.html FEW.html SINGLE.html BOARD [SCREENSHOTS],
BOARD a folder that peridot report made. At
every width nothing is cut and nothing scrolls sideways; machines are in a table where it fits, and else on cards; the
table sorts; hostile texts in reports stay text. SCREENSHOTS: a folder to leave some, in dark and light."""
import pathlib
import sys

from page import Browser, need

# Elements that reach beyond the window, or beyond a parent that hides or scrolls what does not fit.
CUT = """return [...document.querySelectorAll("main *")].filter(e => {
    const box = e.getBoundingClientRect(), hides = getComputedStyle(e).overflowX !== "visible";
    return box.width && (box.left < -1 || box.right > document.documentElement.clientWidth + 1
        || (hides && e.scrollWidth > e.clientWidth + 1 && !e.closest(".whole")));
}).map(e => e.tagName + ": " + e.textContent.slice(0, 60)).slice(0, 5)"""
COLUMN = """return [...document.querySelectorAll("table.machines tbody tr")]
    .map(row => row.cells[arguments[0]].dataset.v ?? row.cells[arguments[0]].textContent)"""


def fits(b, page, shots, table=None):
    """table: the least width at which the machines are in a table."""
    for width in 390, 768, 1400, 1920:
        for dark in (False, True) if shots else (False,):
            b.look(width, 900, dark)
            b.open(page.as_uri())
            cut = b.js(CUT)
            need(not cut, f"{page.name} at {width} pixels cuts {cut}")
            need(b.js("return document.documentElement.scrollWidth <= innerWidth"),
                 f"{page.name} at {width} pixels scrolls sideways")
            if table:
                need(b.js("return !document.querySelector('.machines.narrow')") == (width >= table),
                     f"{page.name} at {width} pixels: table or cards")
            if shots:
                b.shot(shots / f"{page.stem}-{width}{'-dark' if dark else ''}.png")


def sorts(b, page):
    b.look(1920, 900)
    b.open(page.as_uri())
    b.click("table.machines th:nth-child(4)")
    scores = [float(x) for x in b.js(COLUMN, 3) if x]
    need(len(scores) > 30 and scores == sorted(scores, reverse=True), f"scores do not sort: {scores}")
    need(b.js(COLUMN, 3)[len(scores):] == [""] * (50 - len(scores)), "reports without a score are not last")
    b.click("table.machines th:nth-child(4)")
    need([float(x) for x in b.js(COLUMN, 3) if x] == scores[::-1], "scores do not sort the other way")
    b.js("const s = document.querySelector('select'); s.value = 1; s.onchange()")
    labels = b.js(COLUMN, 1)
    need(labels == sorted(labels), f"reports do not sort by their names: {labels}")


SHOWN = """return [...document.querySelectorAll("table.board tbody tr")].filter(row => row.offsetHeight)
    .map(row => row.cells[arguments[0]].dataset.v ?? row.cells[arguments[0]].textContent)"""


def filters(b, page):
    b.look(1920, 900)
    b.open(page.as_uri())
    n = len(b.js(SHOWN, 0))
    choose = ("const s = document.querySelector(`select[data-f='${arguments[0]}']`);"
              "s.value = arguments[1]; s.onchange()")
    b.js(choose, 0, "AMD")
    amd = b.js(SHOWN, 0)
    need(amd and all("AMD" in name or "<script>" in name for name in amd), f"the filter shows {amd}")
    need(b.js("return document.querySelector('output').value") == f"{len(amd)} of {n}", "the count is wrong")
    b.js(choose, 4, "q4_k")
    need(0 < len(b.js(SHOWN, 0)) < len(amd), "two filters together")
    b.look(390, 900)
    need(0 < len(b.js(SHOWN, 0)) < len(amd), "cards that are filtered out are shown")
    b.js(choose, 0, "")
    b.js(choose, 4, "")
    need(len(b.js(SHOWN, 0)) == n, "not all are back")
    b.look(1920, 900)
    for column in range(3, 13):
        b.click(f"table.board th:nth-child({column})")
        values = [float(x) for x in b.js(SHOWN, column - 1) if x not in ("", "-0")]
        need(len(values) >= 10 and values == sorted(values, reverse=True), f"column {column} does not sort: {values}")
    b.click("table.board tbody a")
    need(b.js("return location.pathname").split("/")[-1].startswith("report-"), "a row leads to no page")


def main():
    driver, many, few, single, board = sys.argv[1], *map(pathlib.Path, sys.argv[2:6])
    shots = pathlib.Path(sys.argv[6]) if len(sys.argv) > 6 else None
    b = Browser(driver)
    try:
        fits(b, single, shots)
        fits(b, few, shots, 1920)
        fits(b, many, shots, 1920)
        sorts(b, many)
        fits(b, board / "index.html", shots)
        filters(b, board / "index.html")
        need(b.js("return document.body.innerText.includes('<script>alert(1)')"), "the hostile report is not shown")
        need(not b.errors(), "the browser's console: " + str(b.errors()))
    finally:
        b.call("DELETE", "")


if __name__ == "__main__":
    main()
