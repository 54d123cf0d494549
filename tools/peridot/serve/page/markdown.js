/* ---- Markdown, as elements: no text of the model is ever parsed as HTML ---- */

const element = (name, attributes = {}, ...children) => {
    const e = document.createElement(name);
    for (const [key, value] of Object.entries(attributes))
        if (key === "onclick") e.addEventListener("click", value);
        else e.setAttribute(key, value);
    e.append(...children);
    return e;
};

const link = (text, address) => {
    let url;
    try { url = new URL(address); } catch { return text; }
    if (!["http:", "https:", "mailto:"].includes(url.protocol)) return text;
    return element("a", { href: url.href, rel: "noopener noreferrer", target: "_blank" }, text);
};

const INLINE = [
    [/(`+)([^`]|[^`][^]*?[^`])\1(?!`)/, m => element("code", {}, m[2].replace(/^ (.*) $/s, "$1"))],
    [/\*\*(?=\S)([^]+?)(?<=\S)\*\*/, m => element("strong", {}, ...inline(m[1]))],
    [/(?<![\w*])\*(?=[^\s*])([^*]+?)(?<=\S)\*(?!\*)/, m => element("em", {}, ...inline(m[1]))],
    [/(?<!\w)_(?=\S)([^_]+?)(?<=\S)_(?!\w)/, m => element("em", {}, ...inline(m[1]))],
    [/~~(?=\S)([^]+?)~~/, m => element("del", {}, ...inline(m[1]))],
    [/!?\[([^\]\n]*)\]\(([^\s()]+(?:\([^\s()]*\))?)\)/, m => link(m[1] || m[2], m[2])],
    [/https?:\/\/[^\s<>"']+[^\s<>"'.,;:!?)\]]/, m => link(m[0], m[0])],
];

function inline(text) {
    const parts = [];
    while (text) {
        let best = null;
        for (const [pattern, make] of INLINE) {
            const m = pattern.exec(text);
            if (m && (!best || m.index < best.m.index)) best = { m, make };
        }
        if (!best) return [...parts, text];
        if (best.m.index) parts.push(text.slice(0, best.m.index));
        parts.push(best.make(best.m));
        text = text.slice(best.m.index + best.m[0].length);
    }
    return parts;
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
    element("thead", {}, element("tr", {}, ...cells(rows[0]).map(c => element("th", {}, ...inline(c))))),
    element("tbody", {}, ...rows.slice(2).map(row =>
        element("tr", {}, ...cells(row).map(c => element("td", {}, ...inline(c))))))));

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
    const made = items.map(item => element("li", {}, ...blocks(item, depth + 1)));
    for (const item of made)   /* a tight list has no paragraphs */
        if (item.firstChild?.tagName === "P") item.firstChild.replaceWith(...item.firstChild.childNodes);
    return element(ordered ? "ol" : "ul", ordered ? { start: parseInt(first[2]) } : {}, ...made);
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
            heading = /^(#{1,6})\s+(.*?)\s*#*$/.exec(line);
        end = i + 1;
        if (!line.trim()) continue;
        if (fence) {
            end = until(i + 1, l => l.trim().startsWith(fence[1]) && !l.trim().replaceAll(fence[1][0], ""));
            out.push(code_block(fence[2], lines.slice(i + 1, end).join("\n")));
            end++;
        } else if (heading) {
            out.push(element("h" + Math.min(heading[1].length + 1, 6), {}, ...inline(heading[2])));
        } else if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(line)) {
            out.push(element("hr"));
        } else if (/^\s*>/.test(line)) {
            end = until(i, l => !/^\s*>/.test(l));
            out.push(element("blockquote", {},
                ...blocks(lines.slice(i, end).map(l => l.replace(/^\s*> ?/, "")), depth + 1)));
        } else if (ITEM.test(line)) {
            end = until(i + 1, l => l.trim() && !/^\s/.test(l) && !ITEM.test(l));
            out.push(list(lines.slice(i, end), depth));
        } else if (line.includes("|") && /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)+\|?\s*$/.test(lines[i + 1] ?? "")) {
            end = until(i + 2, l => !l.includes("|"));
            out.push(table(lines.slice(i, end)));
        } else {
            end = until(i + 1, l => !l.trim() || /^\s*(```|~~~|>|#{1,6}\s)/.test(l) || ITEM.test(l));
            const text = lines.slice(i, end).join("\n").split("\n");
            out.push(element("p", {}, ...text.flatMap((l, k) => k ? [element("br"), ...inline(l)] : inline(l))));
        }
    }
    return out;
}
