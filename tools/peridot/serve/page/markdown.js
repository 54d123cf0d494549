/* ---- Markdown, as elements: no text of the model is ever parsed as HTML ---- */

const element = (name, attributes = {}, ...children) => {
    const e = document.createElement(name);
    for (const [key, value] of Object.entries(attributes))
        if (key === "onclick") e.addEventListener("click", value);
        else e.setAttribute(key, value);
    for (const child of children.flat()) e.append(child);   /* there may be more than a call has room for */
    return e;
};

const together = nodes => {
    const all = document.createDocumentFragment();
    for (const node of nodes) all.append(node);
    return all;
};

const link = (text, address) => {
    let url;
    try { url = new URL(address); } catch { return text; }
    if (!["http:", "https:", "mailto:"].includes(url.protocol)) return text;
    return element("a", { href: url.href, rel: "noopener noreferrer", target: "_blank" }, text);
};

/* What may begin at a character of a line. However many begin, the text behind them is looked through once, so that the
 * whole takes time that is linear in its length: `memo` keeps what is known of a line. */

/* Where a text is found at `from` or later, asked with growing numbers, so that nothing is looked through twice. */
function finder(text, wanted) {
    let at = -1;
    return from => {
        while (at < from && at < text.length) {
            at = text.indexOf(wanted, from);
            if (at < 0) at = text.length;
        }
        return at;
    };
}

const space = c => c === undefined || /\s/.test(c), word = c => c !== undefined && /\w/.test(c);
const run_end = (text, i) => {
    const c = text[i];
    while (text[i] === c) i++;
    return i;
};

/* Of each length, where runs of backticks begin. */
function ticks_of(text) {
    const runs = new Map();
    for (let i = text.indexOf("`"), end; i >= 0; i = text.indexOf("`", end)) {
        end = run_end(text, i);
        if (!runs.has(end - i)) runs.set(end - i, { at: [], n_past: 0 });
        runs.get(end - i).at.push(i);
    }
    return runs;
}

/* `code`, between runs of one length. */
function code_at(text, i, memo) {
    const begin = run_end(text, i), runs = (memo.ticks ??= ticks_of(text)).get(begin - i);
    while (runs.at[runs.n_past] <= i) runs.n_past++;
    const close = runs.at[runs.n_past];
    if (close === undefined) return { end: begin, node: text.slice(i, begin) };
    const inner = text.slice(begin, close), padded = inner.length > 1 && inner.startsWith(" ") && inner.endsWith(" ");
    return { end: close + begin - i, node: element("code", {}, padded ? inner.slice(1, -1) : inner) };
}

/* Between two marks of two characters. */
function pair_at(text, i, memo, name, mark, tight) {
    const next = memo[mark] ??= finder(text, mark);
    if (!text.startsWith(mark, i) || space(text[i + 2])) return null;
    let close = next(i + 3);
    while (tight && close < text.length && space(text[close - 1])) close = next(close + 1);
    return close < text.length ? { end: close + 2, node: element(name, {}, inline(text.slice(i + 2, close))) } : null;
}

/* Between two characters, neither of which is in the text. */
function emphasis_at(text, i, memo, mark, is_part) {
    const c = text[i + 1], next = memo[mark] ??= finder(text, mark);
    if (is_part(text[i - 1]) || space(c) || c === mark) return null;
    const close = next(i + 1);
    if (close >= text.length || space(text[close - 1])) return null;
    if (mark === "*" ? text[close + 1] === "*" : word(text[close + 1])) return null;
    return { end: close + 1, node: element("em", {}, inline(text.slice(i + 1, close))) };
}

const star_at = (text, i, memo) => pair_at(text, i, memo, "strong", "**", true)
    ?? emphasis_at(text, i, memo, "*", c => c === "*" || word(c));

/* The address in "(ADDRESS)", which may have parentheses once; null: there is none. */
function address_at(text, begin) {
    const past = i => {
        while (i < text.length && !space(text[i]) && text[i] !== "(" && text[i] !== ")") i++;
        return i;
    };
    let end = past(begin + 1);
    if (end === begin + 1) return null;
    if (text[end] === "(") {
        end = past(end + 1);
        if (text[end++] !== ")") return null;
    }
    return text[end] === ")" ? { end: end + 1, url: text.slice(begin + 1, end) } : null;
}

/* [text](address); an image is a link, too. All brackets before one that closes ask about the same address. */
function link_at(text, i, memo) {
    const begin = text[i] === "!" ? i + 1 : i;
    if (text[begin] !== "[") return null;
    const close = (memo["]"] ??= finder(text, "]"))(begin + 1);
    if (memo.close !== close) {
        memo.close = close;
        memo.address = text[close + 1] === "(" ? address_at(text, close + 1) : null;
    }
    if (!memo.address) return null;
    const { end, url } = memo.address;
    return { end, node: link(text.slice(begin + 1, close) || url, url) };
}

function url_at(text, i) {
    const begin = text.startsWith("http://", i) ? i + 7 : text.startsWith("https://", i) ? i + 8 : 0;
    if (!begin) return null;
    let end = begin;
    while (end < text.length && !/[\s<>"']/.test(text[end])) end++;
    while (end > begin && ".,;:!?)]".includes(text[end - 1])) end--;
    return end > begin + 1 ? { end, node: link(text.slice(i, end), text.slice(i, end)) } : null;
}

const INLINE = {
    "`": code_at, "*": star_at, "[": link_at, "!": link_at, "h": url_at,
    "_": (text, i, memo) => emphasis_at(text, i, memo, "_", word),
    "~": (text, i, memo) => pair_at(text, i, memo, "del", "~~", false),
};

/* What stands within others is gone through again: of emphasis and the like there are four kinds, and none holds
 * another of its own. */
function inline(text) {
    const parts = [], memo = {};
    let plain = 0;   /* where text begins that is nothing else */
    for (const special = /[`*[!h_~]/g; special.test(text);) {
        const i = special.lastIndex - 1, found = INLINE[text[i]](text, i, memo);
        if (!found) continue;
        if (i > plain) parts.push(text.slice(plain, i));
        parts.push(found.node);
        plain = special.lastIndex = found.end;
    }
    return plain < text.length ? [...parts, text.slice(plain)] : parts;
}

async function copy(text, button) {
    try {
        if (navigator.clipboard) await navigator.clipboard.writeText(text);
        else {   /* pages that came over plain HTTP from elsewhere */
            const area = element("textarea");
            document.body.append(area);
            area.value = text;
            area.select();
            document.execCommand("copy");
            area.remove();
        }
        button.textContent = "Copied";
    } catch { button.textContent = "Cannot copy"; }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
}

const copy_button = text =>
    element("button", { type: "button", class: "plain", onclick: e => copy(text(), e.currentTarget) }, "Copy");

const code_block = (language, text) => element("div", { class: "code" },
    element("div", { class: "bar" }, element("span", {}, language), copy_button(() => text)),
    element("pre", { tabindex: "0", "aria-label": "Code" }, element("code", {}, text)));

const cells = row => row.trim().replace(/^\||\|$/g, "").split("|").map(cell => cell.trim());
const table = rows => element("div", { class: "table", tabindex: "0" }, element("table", {},
    element("thead", {}, element("tr", {}, cells(rows[0]).map(c => element("th", {}, inline(c))))),
    element("tbody", {}, rows.slice(2).map(row =>
        element("tr", {}, cells(row).map(c => element("td", {}, inline(c))))))));

/* The line below the titles of a table: "|---|:-:|". */
const is_ruler = line => cells(line).length > 1 && cells(line).every(cell => /^:?-+:?$/.test(cell));

/* Without the characters # that may end a heading. */
function title_of(text) {
    let end = text.length;
    while (text[end - 1] === "#") end--;
    return text.slice(0, end).trimEnd();
}

const MAX_DEPTH = 12;   /* of quotes and lists in each other: thousands end the browser's tab */
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+/;

/* Lines of a list: an item's further lines are those that are indented below it. */
function list(lines, depth) {
    const first = ITEM.exec(lines[0]), ordered = /\d/.test(first[2]);
    const items = [];
    for (const line of lines) {
        const m = ITEM.exec(line);
        if (m && m[1].length <= first[1].length + 1) items.push([line.slice(m[0].length)]);
        else items.at(-1).push(line.slice(Math.min(line.search(/\S|$/), first[0].length)));
    }
    const made = items.map(item => element("li", {}, blocks(item, depth + 1)));
    for (const item of made)   /* a tight list has no paragraphs */
        if (item.firstChild?.tagName === "P") item.firstChild.replaceWith(together([...item.firstChild.childNodes]));
    return element(ordered ? "ol" : "ul", ordered ? { start: parseInt(first[2]) } : {}, made);
}

/* Each kind of block: how its first line looks, and how many lines it takes. The last one takes what is left. */
function blocks(lines, depth = 0) {
    if (depth > MAX_DEPTH) return [element("p", {}, lines.join("\n"))];
    const out = [];
    const until = (i, ends) => {
        let end = i;
        while (end < lines.length && !ends(lines[end])) end++;
        return end;
    };
    for (let i = 0, end; i < lines.length; i = end) {
        const line = lines[i], fence = /^\s*(`{3,}|~{3,})\s*([^`\s]*)/.exec(line),
            heading = /^(#{1,6})\s+([^]*)$/.exec(line);
        end = i + 1;
        if (!line.trim()) continue;
        if (fence) {
            end = until(i + 1, l => l.trim().startsWith(fence[1]) && !l.trim().replaceAll(fence[1][0], ""));
            out.push(code_block(fence[2], lines.slice(i + 1, end).join("\n")));
            end++;
        } else if (heading) {
            out.push(element("h" + Math.min(heading[1].length + 1, 6), {}, inline(title_of(heading[2]))));
        } else if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(line)) {
            out.push(element("hr"));
        } else if (/^\s*>/.test(line)) {
            end = until(i, l => !/^\s*>/.test(l));
            out.push(element("blockquote", {},
                blocks(lines.slice(i, end).map(l => l.replace(/^\s*> ?/, "")), depth + 1)));
        } else if (ITEM.test(line)) {
            end = until(i + 1, l => l.trim() && !/^\s/.test(l) && !ITEM.test(l));
            out.push(list(lines.slice(i, end), depth));
        } else if (line.includes("|") && is_ruler(lines[i + 1] ?? "")) {
            end = until(i + 2, l => !l.includes("|"));
            out.push(table(lines.slice(i, end)));
        } else {
            end = until(i + 1, l => !l.trim() || /^\s*(```|~~~|>|#{1,6}\s)/.test(l) || ITEM.test(l));
            const text = lines.slice(i, end).join("\n").split("\n");
            out.push(element("p", {}, text.flatMap((l, k) => k ? [element("br"), ...inline(l)] : inline(l))));
        }
    }
    return out;
}
