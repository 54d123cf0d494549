/* ---- What stands within a paragraph, as CommonMark and GFM have it, made of elements: no text of a model is ever
 * parsed as HTML. All of it takes time that is linear in the length of the text. ---- */

const element = (name, attributes = {}, ...children) => {
    const e = document.createElement(name);
    for (const [key, value] of Object.entries(attributes))
        if (key === "onclick") e.addEventListener("click", value);
        else e.setAttribute(key, value);
    for (const child of children.flat()) e.append(child);   /* there may be more than a call has room for */
    return e;
};

/* Which addresses may be links: a test of what is parsed allows all. */
const policy = {
    address: text => {
        let url;
        try { url = new URL(text); } catch { return null; }
        return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : null;
    },
};
const link = (address, title) => {
    const href = policy.address(address);
    return href === null ? null : element("a", {
        href, ...(title ? { title } : {}), rel: "noopener noreferrer", target: "_blank",
    });
};

const MAX_NESTED = 24;   /* elements in each other: thousands end the browser's tab */
const MAX_LABEL = 1000, MAX_PARENTHESES = 32;
const space = c => c === undefined || /\s/.test(c), mark = c => c !== undefined && /[\p{P}\p{S}]/u.test(c);

/* What a sticky expression finds at a place. */
const at = (expression, text, i) => {
    expression.lastIndex = i;
    return expression.exec(text);
};

/* ---- entities and escapes ---- */

const ENTITY = /&(?:#x[0-9a-f]{1,6}|#[0-9]{1,7}|[a-z][a-z0-9]{1,31});/iy;

/* Those of HTML 4: of some that follow each other the first one's code, and of the rest names with theirs. */
const NAMES = new Map();
for (const [first, all] of [
    [160, "nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 "
        + "sup3 acute micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc "
        + "Atilde Auml Aring AElig Ccedil Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve "
        + "Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc Uuml Yacute THORN szlig agrave aacute "
        + "acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave iacute icirc iuml eth ntilde "
        + "ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute thorn yuml"],
    [913, "Alpha Beta Gamma Delta Epsilon Zeta Eta Theta Iota Kappa Lambda Mu Nu Xi Omicron Pi Rho"],
    [931, "Sigma Tau Upsilon Phi Chi Psi Omega"],
    [945, "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigmaf sigma "
        + "tau upsilon phi chi psi omega"],
]) all.split(" ").forEach((name, i) => NAMES.set(name, String.fromCodePoint(first + i)));
for (const [, name, code] of ("Dagger 2021 OElig 152 "
    + "Prime 2033 Scaron 160 Yuml 178 alefsym 2135 amp 26 and 2227 ang 2220 apos 27 "
    + "asymp 2248 bdquo 201e bull 2022 cap 2229 circ 2c6 clubs 2663 cong 2245 crarr 21b5 cup 222a dArr 21d3 "
    + "dagger 2020 darr 2193 diams 2666 empty 2205 emsp 2003 ensp 2002 equiv 2261 euro 20ac exist 2203 fnof "
    + "192 forall 2200 frasl 2044 ge 2265 gt 3e hArr 21d4 harr 2194 hearts 2665 hellip 2026 image 2111 "
    + "infin 221e int 222b isin 2208 lArr 21d0 lang 2329 larr 2190 lceil 2308 ldquo 201c le 2264 lfloor "
    + "230a lowast 2217 loz 25ca lrm 200e lsaquo 2039 lsquo 2018 lt 3c mdash 2014 minus 2212 nabla 2207 "
    + "ndash 2013 ne 2260 ni 220b notin 2209 nsub 2284 oelig 153 oline 203e oplus 2295 or 2228 otimes 2297 "
    + "part 2202 permil 2030 perp 22a5 piv 3d6 prime 2032 prod 220f prop 221d quot 22 rArr 21d2 radic 221a "
    + "rang 232a rarr 2192 rceil 2309 rdquo 201d real 211c rfloor 230b rlm 200f rsaquo 203a rsquo 2019 "
    + "sbquo 201a scaron 161 sdot 22c5 sim 223c spades 2660 sub 2282 sube 2286 sum 2211 sup 2283 supe 2287 "
    + "there4 2234 thetasym 3d1 thinsp 2009 tilde 2dc trade 2122 uArr 21d1 uarr 2191 upsih 3d2 weierp 2118 "
    + "zwj 200d zwnj 200c")
    .matchAll(/(\w+) (\w+)/g)) NAMES.set(name, String.fromCodePoint(parseInt(code, 16)));

function entity(text) {
    if (text[1] === "#") {
        const code = /x/i.test(text[2]) ? parseInt(text.slice(3), 16) : parseInt(text.slice(2), 10);
        return code && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff) ? String.fromCodePoint(code) : "\ufffd";
    }
    return NAMES.get(text.slice(1, -1)) ?? text;   /* a browser's own list is behind its parser of HTML */
}

const unescaped = text => text.replace(/\\([!-/:-@[-`{-~])|&(?:#x[0-9a-f]{1,6}|#[0-9]{1,7}|[a-z][a-z0-9]{1,31});/gi,
    (found, escaped) => escaped ?? entity(found));

function encoded(address) {
    try { return encodeURI(address).replace(/%25([0-9a-f]{2})/gi, "%$1"); } catch { return address; }
}

/* ---- links ---- */

const SPACES = /[ \t\n]*/y, ANGLED = /<(?:[^<>\n\\]|\\.)*>/y, LABEL = /\[(?:[^[\]\\]|\\[^]){0,1000}\]/y;
const TITLE = /"(?:[^"\\]|\\[^])*"|'(?:[^'\\]|\\[^])*'|\((?:[^()\\]|\\[^])*\)/y;
const past_spaces = (text, i) => i + at(SPACES, text, i)[0].length;
const label_of = text => text.slice(1, -1).trim().replace(/\s+/g, " ").toLowerCase().toUpperCase();

/* An address that begins at i: { end, address }, or null. */
function address_at(text, i) {
    if (text[i] === "<") {
        const found = at(ANGLED, text, i)?.[0];
        return found === undefined ? null : { end: i + found.length, address: encoded(unescaped(found.slice(1, -1))) };
    }
    let end = i, deep = 0;
    for (; end < text.length; end++) {
        const c = text[end];
        if (c <= " " || c === "\x7f" || c === ")" && !deep) break;
        if (c === "(" && ++deep > MAX_PARENTHESES) return null;
        if (c === ")") deep--;
        if (c === "\\" && /[!-/:-@[-`{-~]/.test(text[end + 1] ?? "")) end++;
    }
    return deep ? null : { end, address: encoded(unescaped(text.slice(i, end))) };
}

const title_at = (text, i) => {
    const found = at(TITLE, text, i)?.[0];
    return found === undefined ? null : { end: i + found.length, title: unescaped(found.slice(1, -1)) };
};

/* "(ADDRESS "TITLE")" at i. */
function target_at(text, i) {
    const begin = past_spaces(text, i + 1), found = address_at(text, begin);
    if (!found) return null;
    let end = past_spaces(text, found.end), title = null;
    if (end > found.end && (title = title_at(text, end))) end = past_spaces(text, title.end);
    return text[end] === ")" ? { end: end + 1, address: found.address, title: title?.title } : null;
}

/* "[LABEL]: ADDRESS "TITLE"" at i, and the end of its line; label is null where that is none. */
function reference_at(text, i) {
    const found = at(LABEL, text, i)?.[0], label = found && label_of(found);
    if (!label || text[i + found.length] !== ":") return null;
    const begin = past_spaces(text, i + found.length + 1), target = address_at(text, begin);
    if (!target || (target.end === begin)) return null;
    const line_end = at(/[ \t]*(?:\n|$)/y, text, target.end), past = past_spaces(text, target.end);
    const title = past > target.end ? title_at(text, past) : null;
    const title_end = title && at(/[ \t]*(?:\n|$)/y, text, title.end);
    if (title_end)
        return { label, address: target.address, title: title.title, end: title.end + title_end[0].length };
    return line_end && { label, address: target.address, end: target.end + line_end[0].length };
}

/* ---- addresses without brackets ---- */

const URL_START = /(?:https?:\/\/|ftp:\/\/|www\.)/iy, DOMAIN = /[\p{L}\p{N}_-]+(?:\.[\p{L}\p{N}_-]+)*/uy;

/* Where an address ends that goes from i to end: not with a mark of the sentence, nor a parenthesis that it closes. */
function without_marks(text, i, end) {
    let left = 0;
    for (let k = i; k < end; k++) left += text[k] === ")" ? 1 : text[k] === "(" ? -1 : 0;
    for (; end > i; end--) {
        const c = text[end - 1];
        if (c === ")" && left-- <= 0) break;
        if (c === ";") {
            let k = end - 2;
            while (k > i && /[a-z0-9]/i.test(text[k])) k--;
            if (text[k] === "&" && k < end - 2) end = k + 1;
        } else if (!"?!.,:*_~'\")".includes(c)) break;
    }
    return end;
}

function url_at(s, i) {
    const { text } = s, start = at(URL_START, text, i)[0], bare = start.toLowerCase() === "www.";
    const before = text[i - 1] ?? " ";
    if (i < s.no_url || (bare ? !/[\s*_~(]/.test(before) : /[\p{L}\p{N}]/u.test(before))) return null;
    const begin = bare ? i : i + start.length, domain = at(DOMAIN, text, begin)?.[0] ?? "", parts = domain.split(".");
    if (!domain || bare && parts.length < 2 || parts.slice(-2).some(part => part.includes("_"))) {
        s.no_url = begin + domain.length;   /* what begins within it ends as it does */
        return null;
    }
    let end = begin + domain.length;
    while (end < text.length && !/[\s<]/.test(text[end])) end++;
    end = without_marks(text, begin, end);
    const found = text.slice(i, end);
    return { end, found, address: encoded(bare ? "http://" + found : found) };
}

const EMAIL_END = /@[a-z0-9_-]+(?:\.[a-z0-9_-]+)+/iy;

/* Text with the addresses of mail in it as links. */
function with_mail(text) {
    const parts = [];
    let plain = 0;
    for (let i = text.indexOf("@"); i >= 0; i = text.indexOf("@", i + 1)) {
        let begin = i;
        while (begin > plain && /[a-z0-9._+-]/i.test(text[begin - 1])) begin--;
        const domain = begin < i && at(EMAIL_END, text, i)?.[0];
        if (!domain || /[-_]$/.test(domain) || /[_-]/.test(text[i + domain.length] ?? "")) continue;
        const mail = text.slice(begin, i) + domain, a = link("mailto:" + mail);
        if (!a) continue;
        a.append(mail);
        parts.push(text.slice(plain, begin), a);
        plain = i + domain.length;
    }
    return [...parts, text.slice(plain)];
}

/* ---- code ---- */

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

function code_at(s, i) {
    const { text } = s, begin = run_end(text, i), runs = (s.ticks ??= ticks_of(text)).get(begin - i);
    while (runs?.at[runs.n_past] <= i) runs.n_past++;   /* none: an escaped tick was part of the run */
    const close = runs?.at[runs.n_past];
    if (close === undefined) return put(s, text.slice(i, begin), begin);
    const inner = text.slice(begin, close).replaceAll("\n", " ");
    const padded = inner.startsWith(" ") && inner.endsWith(" ") && inner.trim();
    s.out.push({ node: element("code", {}, padded ? inner.slice(1, -1) : inner) });
    return close + begin - i;
}

/* ---- emphasis: runs of marks wait for those that close them ---- */

function put(s, text, end) {
    s.out.push({ text });
    return end;
}

function run_at(s, i) {
    const { text } = s, c = text[i], end = run_end(text, i), n = end - i;
    const pair = text.slice(Math.max(i - 2, 0), i), before = [...pair].at(-1);
    const code = text.codePointAt(end), after = code === undefined ? undefined : String.fromCodePoint(code);
    const left = !space(after) && (!mark(after) || space(before) || mark(before));
    const right = !space(before) && (!mark(before) || space(after) || mark(after));
    const opens = c === "_" ? left && (!right || mark(before)) : left;
    const closes = c === "_" ? right && (!left || mark(after)) : right;
    const piece = { text: text.slice(i, end), opens: [], closes: [] };
    s.out.push(piece);
    if (c === "~" && n > 2) return end;
    const run = { c, n, left: n, opens, closes, piece, place: s.n_runs++, before: s.last, after: null };
    if (s.last) s.last.after = run;
    s.last = run;
    return end;
}

function take_out(s, run) {
    if (run.before) run.before.after = run.after;
    if (run.after) run.after.before = run.before;
    else s.last = run.before;
}

/* Whether two runs are a pair: of three marks, two and one are none where a run could be both. */
const are_pair = (a, b) => a.c === b.c && a.opens && (b.c === "~" ? a.left === b.left
    : !((b.opens || a.closes) && b.n % 3 && (a.n + b.n) % 3 === 0));

/* What the marks after `bottom` enclose. Where no run opened for one that closes, none will for its like. */
function emphasise(s, bottom) {
    const floors = {};
    let b = s.last;
    while (b && b.before !== bottom) b = b.before;
    while (b) {
        const key = b.c + b.opens + (b.c === "~" ? b.n : b.n % 3), next = b.after;
        let a = b.closes ? b.before : null;
        while (a && a !== bottom && a.place >= (floors[key] ?? 0) && !are_pair(a, b)) a = a.before;
        if (!b.closes) {
            b = next;
        } else if (a && a !== bottom && a.place >= (floors[key] ?? 0)) {
            const n = b.c === "~" ? b.left : Math.min(a.left, b.left, 2);
            const tag = b.c === "~" ? "del" : n === 2 ? "strong" : "em";
            a.piece.opens.push({ tag });
            b.piece.closes.push({ tag });
            a.left -= n;
            b.left -= n;
            a.piece.text = a.piece.text.slice(n);
            b.piece.text = b.piece.text.slice(n);
            a.after = b;
            b.before = a;
            if (!a.left) take_out(s, a);
            if (!b.left) {
                take_out(s, b);
                b = next;
            }
        } else {
            floors[key] = b.place;
            if (!b.opens) take_out(s, b);
            b = next;
        }
    }
    s.last = bottom;
    if (bottom) bottom.after = null;
}

function open_bracket(s, i, image) {
    const piece = { text: image ? "![" : "[", opens: [], closes: [] }, begin = image ? i + 1 : i;
    s.out.push(piece);
    if (s.brackets.length) s.brackets.at(-1).holds = true;
    s.brackets.push({ piece, image, begin, last: s.last, holds: false });
    return begin + 1;
}

/* The target of the bracket that closes at i: behind it, or of its label. */
function target_of(s, bracket, i) {
    const direct = s.text[i + 1] === "(" ? target_at(s.text, i + 1) : null;
    if (direct) return direct;
    const second = at(LABEL, s.text, i + 1)?.[0], length = second?.length ?? 0;
    if (length <= 2 && (bracket.holds || i - bracket.begin > MAX_LABEL)) return null;
    const label = label_of(length > 2 ? second : s.text.slice(bracket.begin, i + 1)), target = s.references.get(label);
    if (!target) s.missed.add(label);
    return target ? { ...target, end: i + 1 + length } : null;
}

function close_bracket(s, i) {
    const bracket = s.brackets.pop();
    const dead = !bracket || !bracket.image && s.brackets.length < s.n_dead;
    s.n_dead = Math.min(s.n_dead, s.brackets.length);
    const target = dead ? null : target_of(s, bracket, i);
    if (!target) return put(s, "]", i + 1);
    const tag = { tag: bracket.image ? "img" : "a", address: target.address, title: target.title };
    bracket.piece.text = "";
    bracket.piece.opens.push(tag);
    emphasise(s, bracket.last);
    s.out.push({ text: "", opens: [], closes: [tag] });
    if (!bracket.image) s.n_dead = s.brackets.length;   /* no link is in another */
    return target.end;
}

/* ---- the whole ---- */

const ANGLE = /<(?:[a-z][a-z0-9+.-]{1,31}:[^\s<>\x00-\x1f]*|[\w.!#$%&'*+/=?^`{|}~-]+@[a-z0-9-]+(?:\.[a-z0-9-]+)*)>/iy;

function angle_at(s, i) {
    const found = at(ANGLE, s.text, i)?.[0];
    if (!found) return put(s, "<", i + 1);
    const text = found.slice(1, -1), has_scheme = /^[a-z][a-z0-9+.-]{1,31}:/i.test(text);
    const tag = { tag: "a", address: has_scheme ? encoded(text) : "mailto:" + text };
    s.out.push({ text: "", opens: [tag], closes: [] }, { text }, { text: "", opens: [], closes: [tag] });
    return i + found.length;
}

function line_end(s, i) {
    const before = s.out.at(-1)?.line_text, n = before === undefined ? 0 : before.length - before.trimEnd().length;
    if (n) s.out.at(-1).text = before.trimEnd();
    s.out.push(n >= 2 ? { node: element("br") } : { text: "\n" });
    return past_spaces(s.text, i + 1);
}

function escape_at(s, i) {
    const c = s.text[i + 1];
    if (c === "\n") {
        s.out.push({ node: element("br") });
        return past_spaces(s.text, i + 2);
    }
    return c !== undefined && /[!-/:-@[-`{-~]/.test(c) ? put(s, c, i + 2) : put(s, "\\", i + 1);
}

function entity_at(s, i) {
    const found = at(ENTITY, s.text, i)?.[0];
    return found ? put(s, entity(found), i + found.length) : put(s, "&", i + 1);
}

function plain_url(s, i) {
    const found = url_at(s, i);
    if (!found) return put(s, s.text[i], i + 1);
    const tag = { tag: "a", address: found.address };
    s.out.push({ text: "", opens: [tag], closes: [] }, { text: found.found },
        { text: "", opens: [], closes: [tag] });
    return found.end;
}

const INLINE = {
    "\\": escape_at, "`": code_at, "*": run_at, "_": run_at, "~": run_at, "<": angle_at, "&": entity_at, "\n": line_end,
    "[": (s, i) => open_bracket(s, i, false), "]": close_bracket,
    "!": (s, i) => s.text[i + 1] === "[" ? open_bracket(s, i, true) : put(s, "!", i + 1),
};

/* The pieces as nodes. In a link there is no other, and in an image nothing but text. */
function built(pieces) {
    const root = document.createDocumentFragment(), stack = [{ node: root, link: false, image: false }];
    let text = "";
    const flush = () => {
        const { node, link: linked, image } = stack.at(-1);
        if (text) node.append(...linked || image || !text.includes("@") ? [text] : with_mail(text));
        text = "";
    };
    const open = ({ tag, address, title }) => {
        flush();
        const above = stack.at(-1), linking = tag === "a" || tag === "img";
        let node = null;
        if (!above.image && stack.length <= MAX_NESTED && !(linking && above.link))
            node = linking ? link(address, title) : element(tag);
        if (node) above.node.append(node);
        stack.push({
            node: node ?? above.node, link: above.link || linking && node !== null,
            image: above.image || tag === "img", empty: tag === "img" && node ? address : "",
        });
    };
    const close = () => {
        const { empty, node } = stack.at(-1);
        if (empty && !text && !node.hasChildNodes()) text = empty;   /* an image without a name */
        flush();
        stack.pop();
    };
    for (const piece of pieces) {
        piece.closes?.forEach(close);
        if (piece.node && stack.at(-1).image) text += piece.node.textContent || "\n";
        else if (piece.node) {
            flush();
            stack.at(-1).node.append(piece.node);
        } else text += piece.text;
        for (let k = (piece.opens?.length ?? 0) - 1; k >= 0; k--) open(piece.opens[k]);
    }
    flush();
    return root;
}

/* references: by label; missed: a set that gets the labels that there are none of. */
function inline(text, references = new Map(), missed = new Set()) {
    const s = {
        text, references, missed, out: [], brackets: [], n_dead: 0, last: null, n_runs: 0, ticks: null, no_url: 0,
    };
    let plain = 0;   /* where text begins that is nothing else */
    const special = /[\\`*_~<&\n[\]!]|https?:\/\/|ftp:\/\/|www\./gi;
    for (let found; (found = at(special, text, plain));) {
        const before = text.slice(plain, found.index);
        if (before) s.out.push({ text: before, line_text: before });
        plain = (INLINE[text[found.index]] ?? plain_url)(s, found.index);
    }
    if (plain < text.length) s.out.push({ text: text.slice(plain) });
    emphasise(s, null);
    return built(s.out);
}
