/* ---- Markdown as CommonMark and GFM have it, without raw HTML: a text is read line by line as it comes, and what is
 * finished is never drawn again, so that a selection above the end stays, and each piece costs what it adds. ---- */

const MAX_DEPTH = 12;   /* of quotes and lists in each other: thousands end the browser's tab */
const MAX_CELLS = 20000;   /* that a table's short rows lack */

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

/* ---- a line, and how far it is read: tabs go to the next column of four ---- */

function ahead(line) {
    let i = line.i, column = line.column;
    for (; line.text[i] === " " || line.text[i] === "\t"; i++) column += line.text[i] === "\t" ? 4 - column % 4 : 1;
    return { i, indent: column - line.column, blank: i >= line.text.length };
}

function skip(line, n) {
    for (; n > 0 && line.i < line.text.length; n--) {
        const last = line.text[line.i] !== "\t" || line.column % 4 === 3;
        line.column++;
        line.part = !last;   /* of a tab, which stands for the spaces that are left of it */
        if (last) line.i++;
    }
}

const skip_to = (line, { i, indent }) => { line.column += indent; line.i = i; line.part = false; };
const rest_of = line =>
    line.part ? " ".repeat(4 - line.column % 4) + line.text.slice(line.i + 1) : line.text.slice(line.i);

/* ---- blocks: a type, its kids (of code and tables their lines), and what is drawn of it in view ---- */

const HOLDS = { root: true, quote: true, item: true };   /* blocks */
const block = (type, more = {}) => ({
    type, parent: null, kids: [], open: true, text: "", n_done: 0, view: {}, ...more,
});
const tip = d => d.path.at(-1);
const is_deep = d => d.path.filter(b => b.type === "quote" || b.type === "item").length >= MAX_DEPTH;

function close(d) {
    const b = d.path.pop();
    b.open = false;
    if (b.type !== "p") return;
    take_references(d, b);
    if (!b.text.trim()) b.parent.kids.pop();
}

/* The definitions that a paragraph begins with are not shown; if it has nothing else, nor is it. */
function take_references(d, p) {
    let i = 0;
    for (let found; p.text[i] === "[" && (found = reference_at(p.text, i)); i = found.end) {
        const { label } = found;
        if (d.references.has(label)) continue;
        d.references.set(label, found);
        d.defined.push(label);
    }
    if (i) p.text = p.text.slice(i);
}

const cut_to = (d, n) => { while (d.path.length > n) close(d); };

/* Whether the line before was a blank one of this list or item. */
function blank_before(d, parent) {
    let b = d.blank_in;
    while (b && b !== parent && (b === d.blank_in || b.type === "list" || b.type === "item")) b = b.parent;
    return b === parent;
}

/* A new block in what is open at depth n of the path. */
function open(d, n, b) {
    cut_to(d, n);
    while (b.type === "item" ? tip(d).type !== "list" : !HOLDS[tip(d).type]) close(d);
    const parent = tip(d), list = parent.type === "list" ? parent : parent.type === "item" ? parent.parent : null;
    if (list && parent.kids.length && blank_before(d, parent)) list.loose = true;
    b.parent = parent;
    parent.kids.push(b);
    d.path.push(b);
    return d.path.length;
}

/* ---- whether a line goes on with an open block: null where it was the fence that closes it ---- */

const GOES_ON = {
    list: () => true,
    quote(line) {
        const a = ahead(line);
        if (a.indent > 3 || line.text[a.i] !== ">") return false;
        skip_to(line, a);
        skip(line, 1);
        if (line.text[line.i] === " " || line.text[line.i] === "\t") skip(line, 1);
        return true;
    },
    item(line, b) {
        const a = ahead(line);
        if (a.blank) skip_to(line, a);
        else if (a.indent >= b.indent) skip(line, b.indent);
        else return false;
        return !a.blank || b.kids.length > 0;
    },
    code(line, b) {
        const a = ahead(line);
        if (b.fence) {
            const end = a.indent <= 3 && at(/(`+|~+)[ \t]*$/y, line.text, a.i)?.[1];
            if (end && end[0] === b.fence[0] && end.length >= b.fence.length) return null;
            skip(line, Math.min(a.indent, b.indent));
            return true;
        }
        if (a.blank && a.indent < 4) skip_to(line, a);
        else if (a.indent >= 4) skip(line, 4);
        else return false;
        return true;
    },
    p: line => !ahead(line).blank,
    table: line => !ahead(line).blank,
    h: () => false,
    hr: () => false,
};

/* ---- what begins a block: how deep the path is then, or 0 ---- */

const SIDES = [{}, { class: "left" }, { class: "right" }, { class: "center" }];
const ITEM = /(?:[-*+]|([0-9]{1,9})([.)]))(?=[ \t]|$)/y;

/* The cells of a line of a table. */
function cells(row) {
    const out = [];
    let text = row.trim().replace(/^\|/, ""), cell = "";
    for (let i = 0, begin = 0; i <= text.length; i++) {
        if (i < text.length && text[i] !== "|" && text[i] !== "\\") continue;
        cell += text.slice(begin, i);
        if (text[i] === "\\") {
            cell += text[i + 1] === "|" ? "|" : text.slice(i, i + 2);
            begin = ++i + 1;
            continue;
        }
        if (i < text.length || cell.trim()) out.push(cell.trim());
        cell = "";
        begin = i + 1;
    }
    return out;
}

const BEGINS = [
    function quote(d, n, line, a) {
        if (a.indent > 3 || line.text[a.i] !== ">" || is_deep(d)) return 0;
        GOES_ON.quote(line);
        return open(d, n, block("quote"));
    },
    function heading(d, n, line, a) {
        const found = a.indent <= 3 && at(/(#{1,6})(?:[ \t]|$)/y, line.text, a.i);
        if (!found) return 0;
        let text = line.text.slice(a.i + found[1].length).trim(), end = text.length;
        while (text[end - 1] === "#") end--;
        if (end < text.length && (!end || /[ \t]/.test(text[end - 1]))) text = text.slice(0, end).trim();
        return leaf(d, n, block("h", { level: found[1].length, text }));
    },
    function fence(d, n, line, a) {
        const found = a.indent <= 3 && at(/(`{3,}|~{3,})(.*)$/y, line.text, a.i);
        if (!found || found[1][0] === "`" && found[2].includes("`")) return 0;
        const language = unescaped(found[2].trim()).split(/\s/)[0];
        return leaf(d, n, block("code", { fence: found[1], indent: a.indent, language }), true);
    },
    function underline(d, n, line, a) {
        const p = d.path[n - 1], found = p.type === "p" && a.indent <= 3 && at(/(?:=+|-+)[ \t]*$/y, line.text, a.i);
        if (!found) return 0;
        cut_to(d, n);
        take_references(d, p);
        if (!p.text.trim()) return 0;
        Object.assign(p, { type: "h", level: found[0][0] === "=" ? 1 : 2 });
        close(d);
        return -1;
    },
    function table(d, n, line, a) {
        const p = d.path[n - 1], text = line.text.slice(a.i);
        if (p.type !== "p" || a.indent > 3 || !/^[-|:][-|: \t]*$/.test(text)) return 0;
        if (!text.includes("|") && !p.last.includes("|")) return 0;
        const head = cells(p.last), ruler = cells(text);
        if (!ruler.length || head.length !== ruler.length || !ruler.every(c => /^:?-+:?$/.test(c))) return 0;
        p.text = p.text.slice(0, -p.last.length).trimEnd();
        cut_to(d, n - 1);
        const sides = ruler.map(c => SIDES[(c.startsWith(":") ? 1 : 0) + (c.endsWith(":") ? 2 : 0)]);
        open(d, n - 1, block("table", { kids: [head], sides, n_lacking: 0 }));
        return -1;
    },
    function line_across(d, n, line, a) {
        if (a.indent > 3 || !/^([-*_])[ \t]*(?:\1[ \t]*){2,}$/.test(line.text.slice(a.i))) return 0;
        return leaf(d, n, block("hr"));
    },
    function item(d, n, line, a) {
        const above = d.path[n - 1], found = a.indent <= 3 && !is_deep(d) && at(ITEM, line.text, a.i);
        if (!found) return 0;
        const [text, number, kind = text] = found;
        const empty = !line.text.slice(a.i + text.length).trim();
        if (above.type === "p" && (empty || number !== undefined && Number(number) !== 1)) return 0;
        skip_to(line, a);
        skip(line, text.length);
        const space_after = ahead(line).indent, wide = space_after > 4 || space_after < 1 || empty;
        skip(line, wide ? Math.min(space_after, 1) : space_after);
        let depth = n;
        if (above.type !== "list" || above.kind !== kind)
            depth = open(d, n, block("list", { kind, start: number === undefined ? null : +number, loose: false }));
        const indent = a.indent + text.length + (wide ? 1 : space_after);
        return open(d, depth, block("item", { indent, line: d.n_lines }));
    },
    function indented(d, n, line, a) {
        if (a.indent < 4 || a.blank || tip(d).type === "p") return 0;
        skip(line, 4);
        return open(d, n, block("code", { fence: null, language: "" }));
    },
];

/* A block of one line, but for code. */
function leaf(d, n, b, goes_on = false) {
    open(d, n, b);
    if (!goes_on) close(d);
    return -1;
}

/* ---- reading ---- */

function read_line(d, text) {
    const line = { text, i: 0, column: 0, part: false };
    let n = 1, depth;
    d.n_lines++;
    for (; n < d.path.length; n++) {
        const goes_on = GOES_ON[d.path[n].type](line, d.path[n]);
        if (goes_on === null) {
            cut_to(d, n);
            d.blank_in = null;
            return;
        }
        if (!goes_on) break;
    }
    for (let a = ahead(line); d.path[n - 1].type !== "code"; n = depth, a = ahead(line)) {
        depth = 0;
        for (let k = 0; k < BEGINS.length && !depth; k++) depth = BEGINS[k](d, n, line, a);
        if (depth < 0) {
            d.blank_in = null;
            return;
        }
        if (!depth) break;
    }
    read_text(d, n, line);
}

function read_text(d, n, line) {
    const a = ahead(line), lazy = d.path.length > n && !a.blank && tip(d).type === "p", within = d.path[n - 1];
    const blank_in = a.blank && !lazy && within.type !== "quote" && !(within.type === "code" && within.fence)
        && !(within.type === "item" && !within.kids.length && within.line === d.n_lines) ? within : null;
    if (!lazy) cut_to(d, n);
    const b = tip(d), text = line.text.slice(a.i);
    if (b.type === "code") b.kids.push(rest_of(line));
    else if (!a.blank && b.type === "p") add_line(b, text);
    else if (!a.blank && b.type === "table") add_row(b, text);
    else if (!a.blank) open(d, n, block("p", { text, last: text }));
    d.blank_in = blank_in;
}

function add_line(p, text) {
    p.text += "\n" + text;
    p.last = text;   /* which may be the titles of a table */
}

function add_row(table, text) {
    const row = cells(text).slice(0, table.sides.length);
    while (row.length < table.sides.length && table.n_lacking < MAX_CELLS) {
        row.push("");
        table.n_lacking++;
    }
    table.kids.push(row);
}

/* What a line changes that has not ended yet, to take it back. */
const saved_state = d => ({
    path: [...d.path], blank_in: d.blank_in, n_defined: d.defined.length,
    blocks: d.path.map(b => ({ b, was: { ...b }, n: b.kids.length, last: b.kids.at(-1) })),
});
function take_back(d, { path, blank_in, n_defined, blocks }) {
    for (const label of d.defined.splice(n_defined)) d.references.delete(label);
    for (const { b, was, n, last } of blocks) {
        const n_done = Math.min(b.n_done, Math.max(n - 1, 0));   /* the last one is open again */
        Object.assign(b, was, { view: b.view, n_done });
        b.kids.length = n;
        if (n) b.kids[n - 1] = last;
    }
    Object.assign(d, { path, blank_in });
}

/* ---- drawing ---- */

/* The element of a block, which stays the same as long as its kind does. */
function view_of(b, name, make) {
    if (b.view.name !== name) b.view = { name, element: make() };
    return b.view;
}

/* Elements of kids; those before n_done are as they will stay. */
function place(d, b, parent) {
    let i = b.n_done;
    for (; i < b.kids.length; i++) {
        const kid = draw_block(d, b.kids[i]), there = parent.childNodes[i];
        if (kid !== there) {
            if (there) there.replaceWith(kid);
            else parent.append(kid);
        }
        if (i === b.n_done && !b.kids[i].open) b.n_done++;
    }
    while (parent.childNodes.length > i) parent.lastChild.remove();
    return parent;
}

function draw_text(d, b, view, text) {
    if (view.text === text) return view.element;
    const first = b.type === "p" && b.parent.type === "item" && b.parent.kids[0] === b;
    const task = first && /^\[([ xX])\](?=[ \t\n])/.exec(text), missed = new Set();
    const boxes = () => !task ? [] : [element("input",
        { type: "checkbox", disabled: "", "aria-label": "Done", ...(task[1] === " " ? {} : { checked: "" }) })];
    view.text = text;
    view.draw = () => view.element.replaceChildren(
        ...boxes(), inline(task ? text.slice(3) : text, d.references, missed));
    view.draw();
    for (const label of missed) d.missed.set(label, (d.missed.get(label) ?? new Set()).add(view));
    return view.element;
}

const code_text = b => {
    let n = b.kids.length;
    if (!b.fence) while (n && !b.kids[n - 1].trim()) n--;
    return b.kids.slice(0, n);
};

/* Lines that are finished stay; the last one may grow, or turn out to be the fence. */
function draw_code(b) {
    const view = view_of(b, "code", () => {
        const last = element("span"), code = element("code", {}, last);
        const box = element("div", { class: "code" },
            element("div", { class: "bar" }, element("span", {}, b.language),
                copy_button(() => code_text(b).join("\n"))),
            element("pre", { tabindex: "0", "aria-label": "Code" }, code));
        return Object.assign(box, { last, n: 0, state: begin_colours(b.language) });
    });
    const box = view.element, lines = code_text(b);
    const fresh = document.createDocumentFragment();
    for (; box.n < lines.length - 2; box.n++) fresh.append(...coloured(box.state, lines[box.n]), "\n");
    box.last.before(fresh);
    const state = { ...box.state };
    box.last.replaceChildren(
        ...lines.slice(box.n).flatMap((line, k) => [...k ? ["\n"] : [], ...coloured(state, line)]));
    return box;
}

const row_of = (d, b, name, texts) => element("tr", {},
    texts.map((text, k) => element(name, b.sides[k], inline(text, d.references))));

function draw_table(d, b) {
    const { element: box } = view_of(b, "table", () => {
        const body = element("tbody");
        const table = element("table", {}, element("thead", {}, row_of(d, b, "th", b.kids[0])));
        return Object.assign(element("div", { class: "table", tabindex: "0" }, table), { table, body, n: 1 });
    });
    if (b.kids.length > 1 && !box.body.parentNode) box.table.append(box.body);
    while (box.body.childNodes.length > box.n - 1) box.body.lastChild.remove();
    for (let i = box.n; i < b.kids.length; i++) box.body.append(row_of(d, b, "td", b.kids[i]));
    if (b.kids.length < 2) box.body.remove();
    box.n = Math.max(b.kids.length - (d.unended ? 1 : 0), 1);   /* the last line may grow */
    return box;
}

const DRAW = {
    p: (d, b) => draw_text(d, b, view_of(b, "p", () => element("p")), b.text.trimEnd()),
    h: (d, b) => draw_text(d, b, view_of(b, "h" + Math.min(b.level + 1, 6),
        () => element("h" + Math.min(b.level + 1, 6))), b.text.trimEnd()),
    hr: (d, b) => view_of(b, "hr", () => element("hr")).element,
    code: (d, b) => draw_code(b),
    table: draw_table,
    quote: (d, b) => place(d, b, view_of(b, "quote", () => element("blockquote")).element),
    item: (d, b) => place(d, b, view_of(b, "item", () => element("li")).element),
    list(d, b) {
        const { element: list } = view_of(b, "list", () => b.start === null ? element("ul")
            : element("ol", b.start === 1 ? {} : { start: b.start }));
        if (b.loose) list.removeAttribute("class");
        else list.setAttribute("class", "tight");   /* its paragraphs have no space between them */
        return place(d, b, list);
    },
};
const draw_block = (d, b) => DRAW[b.type](d, b);

/* Draws anew what lacked labels that were defined since. */
function draw_all(d) {
    for (const label of d.defined.slice(d.n_drawn)) {
        for (const view of d.missed.get(label) ?? []) view.draw();
        d.missed.delete(label);
    }
    d.n_drawn = d.defined.length;
    place(d, d.path[0], d.body);
}

/* A text that comes in pieces, drawn into an element: write() takes what more there is of it, draw() shows it so far,
 * and end() all of it. */
function markdown(body) {
    const d = {
        path: [block("root")], references: new Map(), defined: [], n_drawn: 0, missed: new Map(), blank_in: null,
        n_lines: 0, unended: false, body,
    };
    let rest = "";
    const write = text => {
        const lines = (rest + text).split(/\r\n|\n|\r(?!$)/);
        rest = lines.pop();
        for (const line of lines) read_line(d, line.replaceAll("\0", "\ufffd"));
    };
    const draw = () => {
        const state = saved_state(d);   /* the last line may go on */
        d.unended = rest !== "";
        if (d.unended) read_line(d, rest);
        draw_all(d);
        take_back(d, state);
        d.n_drawn = Math.min(d.n_drawn, d.defined.length);
    };
    const end = () => {
        if (rest) read_line(d, rest.replace(/\r$/, ""));
        rest = "";
        cut_to(d, 1);
        d.unended = false;
        draw_all(d);
        return body;
    };
    return { write, draw, end };
}

/* A whole text. */
function marked_up(text, body = element("div")) {
    const m = markdown(body);
    m.write(text);
    return m.end();
}
