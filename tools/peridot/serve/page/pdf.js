/* ---- PDF files (ISO 32000): the text of their pages, in the order in which it is drawn. Objects are found by looking
        through the file, not by its tables, so that damaged files are read, too. Fonts are read by their ToUnicode or
        their encoding; what has neither is U+FFFD. Not read: encrypted files, pictures (scanned pages), fields.
        A file is anybody's: `left` is how many bytes may yet be looked at, where each value counts as more ---- */

const MAX_PDF = 32 << 20, MAX_LOOKED_AT = 512 << 20, VALUE_COST = 128, MAX_RANGE = 1 << 16;

function binary(bytes) {
    const parts = [];
    for (let i = 0; i < bytes.length; i += 32768) parts.push(String.fromCharCode(...bytes.subarray(i, i + 32768)));
    return parts.join("");
}

/* Values from `at` on: numbers; "/Name"; { s: string }; arrays; Maps; { ref: number }; { op: any other word }. */
function pdf_reader(doc, s, at = 0) {
    const take = pattern => {
        pattern.lastIndex = at;
        const found = pattern.exec(s)?.[0] ?? "";
        at += found.length;
        return found;
    };
    const blank = () => take(/[\0\t\n\f\r ]*(?:%[^\r\n]*[\0\t\n\f\r ]*)*/y);
    const escape = { n: "\n", r: "\r", t: "\t", b: "\b", f: "\f", "\r": "", "\n": "" };
    function string() {
        const parts = [];
        for (let depth = 1; at++ < s.length;) {
            parts.push(take(/[^()\\]*/y));
            if (s[at] === "(") depth++;
            if (s[at] === ")" && --depth === 0) break;
            if (s[at] !== "\\") { parts.push(s[at] ?? ""); continue; }
            at++;
            const octal = take(/[0-7]{1,3}/y);
            if (octal) at--, parts.push(String.fromCharCode(parseInt(octal, 8) & 255));
            else parts.push(escape[s[at]] ?? s[at] ?? "");
            if (s.startsWith("\r\n", at)) at++;
        }
        at++;
        return { s: parts.join("") };
    }
    function hex() {
        const digits = take(/<[^>]*>?/y).replace(/[^0-9a-f]/gi, "");
        return { s: digits.replace(/..?/g, two => String.fromCharCode(parseInt(two.padEnd(2, "0"), 16))) };
    }
    function list(end, depth) {
        const all = [];
        for (let value; (value = read(depth + 1)) !== undefined && value.op !== end;)
            if (value.op === "R") all.splice(-2, 2, { ref: all.at(-2) });
            else all.push(value);
        return all;
    }
    function dictionary(depth) {
        const all = list(">>", depth), map = new Map();
        for (let i = 0; i + 1 < all.length; i += 2) map.set(String(all[i]).slice(1), all[i + 1]);
        return map;
    }
    function read(depth = 0) {
        blank();
        const c = s[at], begun = at;
        if (c === undefined) return undefined;
        if (depth > 64) throw new Error("its objects nest too deep.");
        if (c === "(") return string();
        if (s.startsWith("<<", at)) return at += 2, dictionary(depth);
        if (c === "<") return hex();
        if (c === "[") return at++, list("]", depth);
        if (s.startsWith(">>", at)) return at += 2, { op: ">>" };
        if (c === "/") return at++, "/" + take(/[^\0\t\n\f\r ()<>[\]{}/%]*/y).replace(/#([0-9a-f]{2})/gi,
            (_, two) => String.fromCharCode(parseInt(two, 16)));
        const word = take(/[^\0\t\n\f\r ()<>[\]{}/%]+/y);
        if (at === begun) at++;
        return /^[+-]?(\d+\.?\d*|\.\d+)$/.test(word) ? Number(word) : { op: word || c };
    }
    return {
        read() {
            const begun = at, value = read();
            if ((doc.left -= at - begun + VALUE_COST) < 0) throw new Error("it is too large.");
            return value;
        },
        at: () => (blank(), at),
        skip: pattern => { if (!take(pattern)) at = s.length; },
    };
}

/* ---- objects ---- */

function get(doc, value) {
    for (let i = 0; i < 16 && value?.ref !== undefined; i++) value = doc.objects.get(value.ref);
    return value?.ref === undefined ? value : undefined;
}
const dict_of = (doc, value) => { const v = get(doc, value); return v instanceof Map ? v : v?.dict ?? new Map(); };
const list_of = (doc, value) => { const v = get(doc, value); return Array.isArray(v) ? v : []; };
const entry = (doc, dict, key) => get(doc, dict.get(key));

async function inflate(doc, bytes) {
    const stream = new DecompressionStream("deflate"), writer = stream.writable.getWriter(), parts = [];
    const reader = stream.readable.getReader();
    writer.write(bytes).then(() => writer.close()).catch(() => {});
    try {
        for (let next; !(next = await reader.read()).done;) {
            parts.push(binary(next.value));
            if ((doc.left -= next.value.length) < 0) throw new RangeError();
        }
    } catch (error) {   /* else what came before a damage is taken */
        if (error instanceof RangeError) throw new Error("it is too large.");
    }
    return parts.join("");
}

function ascii85(s) {
    const out = [];
    for (const group of s.replace(/~>[^]*|[^!-uz]/g, "").match(/z|[^z]{1,5}/g) ?? []) {
        let value = 0;
        for (const c of group === "z" ? "!!!!!" : group.padEnd(5, "u")) value = value * 85 + c.charCodeAt(0) - 33;
        for (let i = 0; i < (group === "z" ? 4 : group.length - 1); i++)
            out.push(String.fromCharCode(Math.floor(value / 256 ** (3 - i)) & 255));
    }
    return out.join("");
}

/* A stream's content; "" where a filter is not known. */
async function content_of_stream(doc, stream) {
    if (!stream?.dict) return "";
    if (stream.content !== undefined) return stream.content;
    const { dict, begin } = stream, length = entry(doc, dict, "Length"), filter = entry(doc, dict, "Filter");
    const exact = /^\s{0,2}endstream/.test(doc.text.substr(begin + length, 11));
    let s = doc.text.slice(begin, exact ? begin + length : stream.end);
    for (const name of [filter ?? []].flat().map(each => get(doc, each))) {
        if (name === "/FlateDecode" || name === "/Fl")
            s = await inflate(doc, Uint8Array.from(s, c => c.charCodeAt(0)));
        else if (name === "/ASCII85Decode" || name === "/A85") s = ascii85(s);
        else if (name === "/ASCIIHexDecode" || name === "/AHx") s = pdf_reader(doc, "<" + s).read().s;
        else s = "";
    }
    return stream.content = s;
}

/* Those that a stream has in it. */
async function unpack(doc, stream) {
    const s = await content_of_stream(doc, stream), head = pdf_reader(doc, s);
    for (let i = entry(doc, stream.dict, "N"); i > 0; i--) {
        const number = head.read(), at = head.read();
        if (!Number.isInteger(number) || !Number.isInteger(at)) break;
        doc.objects.set(number, pdf_reader(doc, s, entry(doc, stream.dict, "First") + at).read());
    }
}

/* All of the file; later ones stand for earlier ones of their number. */
async function find_objects(doc) {
    const { text } = doc, begins = /(\d{1,10})[\0\t\n\f\r ]{1,9}\d{1,5}[\0\t\n\f\r ]{1,9}obj|trailer/g, packed = [];
    for (let m; (m = begins.exec(text));) {
        const reader = pdf_reader(doc, text, begins.lastIndex), dict = reader.read();
        let end = reader.at(), object = dict;
        if (dict instanceof Map && text.startsWith("stream", end)) {
            const begin = end + (text[end + 6] === "\r" ? 8 : 7), length = dict.get("Length");
            end = text.indexOf("endstream", begin + (length < text.length - begin ? length : 0));
            if (end < 0) end = text.length;
            object = { dict, begin, end };
        }
        begins.lastIndex = end;
        if (dict instanceof Map && (!m[1] || dict.get("Type") === "/XRef")) doc.trailers.push(dict);
        if (!m[1]) continue;
        doc.objects.set(Number(m[1]), object);
        if (dict instanceof Map && dict.get("Type") === "/ObjStm") packed.push(object);
    }
    if (doc.trailers.some(each => each.has("Encrypt"))) throw new Error("it is encrypted.");
    for (const stream of packed) await unpack(doc, stream);
}

/* ---- fonts ---- */

const ACCENTS = { acute: 769, grave: 768, circumflex: 770, tilde: 771, dieresis: 776, ring: 778, cedilla: 807,
    caron: 780, ogonek: 808, breve: 774, macron: 772, dotaccent: 775, hungarumlaut: 779 };
const GLYPHS = Object.fromEntries(("exclam ! quotedbl \" numbersign # dollar $ percent % ampersand & quotesingle '"
    + " parenleft ( parenright ) asterisk * plus + comma , hyphen - period . slash / zero 0 one 1 two 2 three 3 four 4"
    + " five 5 six 6 seven 7 eight 8 nine 9 colon : semicolon ; less < equal = greater > question ? at @ bracketleft ["
    + " backslash \\ bracketright ] asciicircum ^ underscore _ grave ` braceleft { bar | braceright } asciitilde ~"
    + " endash – emdash — quoteleft ‘ quoteright ’ quotedblleft “ quotedblright ” quotesinglbase ‚ quotedblbase „"
    + " bullet • ellipsis … fi fi fl fl ff ff ffi ffi ffl ffl dagger † daggerdbl ‡ germandbls ß ae æ AE Æ oe œ OE Œ"
    + " oslash ø Oslash Ø dotlessi ı lslash ł Lslash Ł guillemotleft « guillemotright » section § degree ° copyright ©"
    + " registered ® trademark ™ Euro € sterling £ minus − multiply × mu µ periodcentered · exclamdown ¡ cent ¢ yen ¥"
    + " questiondown ¿ plusminus ± paragraph ¶ eth ð Eth Ð thorn þ Thorn Þ").match(/\S+ \S+/g).map(e => e.split(" ")));
GLYPHS.space = " ";

function glyph(name) {
    const accent = /^([A-Za-z])([a-z]+)$/.exec(name), code = /^u(?:ni)?([0-9A-F]{4,6})$/.exec(name)?.[1];
    if (GLYPHS[name] || name.length === 1) return GLYPHS[name] ?? name;
    if (accent && ACCENTS[accent[2]]) return (accent[1] + String.fromCharCode(ACCENTS[accent[2]])).normalize("NFC");
    return code && parseInt(code, 16) < 0x110000 ? String.fromCodePoint(parseInt(code, 16)) : undefined;
}

const number_of = s => [...s].reduce((n, c) => n * 256 + c.charCodeAt(0), 0);
const utf16 = s => new TextDecoder("utf-16be").decode(Uint8Array.from(s, c => c.charCodeAt(0)));

/* { map: by code, size: bytes of a code }. */
function to_unicode(doc, cmap) {
    const reader = pdf_reader(doc, cmap), map = new Map();
    let values = [], size = 0;
    const put = (from, to, text) => {
        for (let code = from; code <= to && code < from + MAX_RANGE && map.size < 4 * MAX_RANGE; code++) {
            const last = text.s?.length - 1, unit = text.s?.charCodeAt(last) + code - from;
            const s = text[code - from]?.s ?? text.s?.slice(0, last) + String.fromCharCode(unit);
            map.set(code, utf16(unit > 255 && last > 0 ? text.s.slice(0, last - 1) + String.fromCharCode(
                (text.s.charCodeAt(last - 1) + (unit >> 8)) & 255, unit & 255) : s));
        }
    };
    for (let value; (value = reader.read()) !== undefined;) {
        if (!value.op) { values.push(value); continue; }
        const step = { endbfchar: 2, endbfrange: 3 }[value.op];
        if (value.op === "endcodespacerange") size = values[0]?.s?.length ?? 0;
        for (let i = 0; step && i + step <= values.length; i += step)
            if (values[i].s) put(number_of(values[i].s), number_of(values[i + step - 2].s ?? ""), values[i + step - 1]);
        values = [];
    }
    return { map, size };
}

/* Of codes: a Map, or what is `otherwise`. */
function widths_of(doc, font, inner) {
    const map = new Map(), scale = Math.abs(list_of(doc, font.get("FontMatrix"))[0]) || 0.001;
    const put = (from, list) => list.forEach((w, i) => map.set(from + i, Number(get(doc, w)) * scale));
    put(entry(doc, font, "FirstChar") ?? 0, list_of(doc, font.get("Widths")));
    const w = list_of(doc, inner.get("W")).map(each => get(doc, each));
    for (let i = 0; i + 1 < w.length; i += Array.isArray(w[i + 1]) ? 2 : 3)
        if (Array.isArray(w[i + 1])) put(w[i], w[i + 1]);
        else if (w[i + 1] - w[i] < MAX_RANGE && map.size < 4 * MAX_RANGE)
            put(w[i], Array(Math.max(0, w[i + 1] - w[i] + 1)).fill(w[i + 2]));
    return { map, otherwise: font.get("DescendantFonts") ? (entry(doc, inner, "DW") ?? 1000) * 0.001 : 0.5 };
}

/* What codes without a ToUnicode are, of a font with one byte a character. */
function encoding_of(doc, font) {
    const named = entry(doc, font, "Encoding"), dict = named instanceof Map ? named : new Map();
    const base = dict.get("BaseEncoding") ?? named, mac = base === "/MacRomanEncoding";
    const all = [...new TextDecoder(mac ? "macintosh" : "windows-1252").decode(Uint8Array.from({ length: 256 },
        (_, i) => i))];
    let code = 0;
    for (const each of list_of(doc, dict.get("Differences")))
        if (Number.isInteger(each)) code = each;
        else if (code < 256) all[code++] = glyph(String(each).slice(1));
    return all;
}

async function read_font(doc, font) {
    const inner = dict_of(doc, list_of(doc, font.get("DescendantFonts"))[0]), wide = font.get("DescendantFonts");
    const { map, size } = to_unicode(doc, await content_of_stream(doc, entry(doc, font, "ToUnicode")));
    const direct = /UCS2|UTF16/.test(entry(doc, font, "Encoding"));   /* codes that are UTF-16 */
    const table = wide ? [] : encoding_of(doc, font), n = wide ? [1, 2].includes(size) ? size : 2 : 1;
    const widths = widths_of(doc, font, inner);
    return s => (s.match(n === 2 ? /[^]{1,2}/g : /[^]/g) ?? []).map(c => ({
        text: map.get(number_of(c)) ?? (direct ? utf16(c) : table[number_of(c)]) ?? "\ufffd",
        width: widths.map.get(number_of(c)) ?? widths.otherwise, space: c === " ",
    }));
}

/* ---- pages ---- */

const times = ([a, b, c, d, e, f], [A, B, C, D, E, F]) =>
    [a * A + b * C, a * B + b * D, c * A + d * C, c * B + d * D, e * A + f * C + E, e * B + f * D + F];

/* A piece of text from where it begins to where it ends, on the page, in letters so high. */
function place_text(out, text, from, to, height) {
    const { last } = out;
    if (last) {
        const dx = from[4] - last.to[4], dy = from[5] - last.to[5], length = Math.hypot(from[0], from[1]) || 1;
        const along = (dx * from[0] + dy * from[1]) / length, across = Math.abs(dx * from[1] - dy * from[0]) / length;
        if (across > height / 2 || along < -2 * height) out.parts.push(across > 1.9 * height ? "\n\n" : "\n");
        else if (along > 0.15 * height && !/\s$/.test(last.text) && !/^\s/.test(text)) out.parts.push(" ");
    }
    out.parts.push(text);
    out.last = { to, text };
}

/* What a content stream draws. A font is a function that reads a string's codes. */
async function draw_content(doc, content, resources, out, matrix, depth = 0) {
    const reader = pdf_reader(doc, content), kept = [], named = key => dict_of(doc, resources.get(key));
    let s = { matrix, font: null, size: 1, spacing: 0, words: 0, scale: 1, leading: 0 };
    let line = [1, 0, 0, 1, 0, 0], at = line, v = [];
    const move = (x, y) => { at = line = times([1, 0, 0, 1, x, y], line); };
    const advance = x => { at = times([1, 0, 0, 1, x * s.scale, 0], at); };
    const write = ({ s: codes }) => {
        const from = times(at, s.matrix), glyphs = s.font && codes !== undefined ? s.font(codes) : [];
        for (const { width, space } of glyphs) advance(width * s.size + s.spacing + (space ? s.words : 0));
        const height = s.size * Math.hypot(from[2], from[3]);
        if (glyphs.length) place_text(out, glyphs.map(g => g.text).join(""), from, times(at, s.matrix), height);
    };
    const on = {
        q: () => kept.push({ ...s }), Q: () => { s = kept.pop() ?? s; },
        cm: () => { if (v.length === 6) s.matrix = times(v, s.matrix); },
        BT: () => { at = line = [1, 0, 0, 1, 0, 0]; },
        Tm: () => { if (v.length === 6) at = line = v; },
        Td: () => move(...v), TD: () => { s.leading = -v[1]; move(...v); }, "T*": () => move(0, -s.leading),
        TL: () => { [s.leading] = v; }, Tc: () => { [s.spacing] = v; }, Tw: () => { [s.words] = v; },
        Tz: () => { s.scale = v[0] / 100; },
        Tj: () => write(v[0]), "'": () => { move(0, -s.leading); write(v[0]); },
        '"': () => { [s.words, s.spacing] = v; move(0, -s.leading); write(v[2]); },
        TJ: () => { for (const each of v[0]) each.s === undefined ? advance(-each / 1000 * s.size) : write(each); },
        ID: () => reader.skip(/[^]*?[\t\n\r ]EI(?=[\t\n\r ]|$)/y),
        Tf: async () => {
            const font = dict_of(doc, named("Font").get(String(v[0]).slice(1)));
            if (!doc.fonts.has(font)) doc.fonts.set(font, await read_font(doc, font));
            [s.font, s.size] = [doc.fonts.get(font), v[1]];
        },
        Do: async () => {
            const form = get(doc, named("XObject").get(String(v[0]).slice(1))), own = form?.dict?.get("Resources");
            if (form?.dict?.get("Subtype") !== "/Form" || depth > 8) return;
            const by = list_of(doc, form.dict.get("Matrix"));
            await draw_content(doc, await content_of_stream(doc, form), own ? dict_of(doc, own) : resources, out,
                by.length === 6 ? times(by, s.matrix) : s.matrix, depth + 1);
        },
    };
    for (let value; (value = reader.read()) !== undefined;) {
        if (value.op === undefined) { if (v.push(value) > 64) v = []; continue; }
        try {
            const done = Object.hasOwn(on, value.op) && on[value.op]();
            if (done) await done;
        } catch (error) { if (!(error instanceof TypeError)) throw error; }   /* it has not what it needs */
        v = [];
    }
}

/* Those below a node of the tree, with the resources that they inherit. */
function* pages_below(doc, ref, resources, seen = new Set()) {
    const node = dict_of(doc, ref), own = node.has("Resources") ? dict_of(doc, node.get("Resources")) : resources;
    if (seen.has(node) || seen.size > 1e5) return;
    seen.add(node);
    if (!node.has("Kids")) return yield { node, resources: own };
    for (const kid of list_of(doc, node.get("Kids"))) yield* pages_below(doc, kid, own, seen);
}

/* { text, n_pages, n_empty: pages of which nothing could be read }. What cannot be read is an Error's sentence. */
async function text_of_pdf(bytes) {
    const doc = { text: binary(bytes), objects: new Map(), trailers: [], fonts: new Map(), left: MAX_LOOKED_AT };
    await find_objects(doc);
    const root = doc.trailers.map(each => dict_of(doc, each.get("Root"))).findLast(each => each.has("Pages"))
        ?? [...doc.objects.values()].findLast(each => each instanceof Map && each.get("Type") === "/Catalog");
    const texts = [];
    for (const { node, resources } of root ? pages_below(doc, root.get("Pages"), new Map()) : []) {
        const contents = get(doc, node.get("Contents")), out = { parts: [], last: null };
        let content = "";
        for (const each of [contents ?? []].flat()) content += await content_of_stream(doc, get(doc, each)) + "\n";
        await draw_content(doc, content, resources, out, [1, 0, 0, 1, 0, 0]);
        texts.push(out.parts.join("").replace(/[ \t]+\n/g, "\n").replace(/\0/g, "")
            .replace(/[\ufb00-\ufb06]/g, c => c.normalize("NFKC")).trim());
    }
    const readable = texts.filter(text => /[^\s\ufffd]/.test(text));
    if (!texts.length) throw new Error("it is damaged, or no PDF file.");
    if (!readable.length && texts.some(Boolean)) throw new Error("its fonts do not say which characters they have.");
    return { text: readable.join("\n\n"), n_pages: texts.length, n_empty: texts.length - readable.length };
}
