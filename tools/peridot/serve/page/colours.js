/* ---- Colours of code: comments, strings, numbers and words that a language has ---- */

const C_WORDS = "auto bool break case char const continue default do double else enum extern false float for goto "
        + "if inline int long nullptr NULL register return short signed sizeof static struct switch true typedef "
        + "union unsigned void volatile while";
const c_like = words => ({ words, line: "//", block: ["/*", "*/"], quotes: "\"'" });
const LANGUAGES = {
    c: c_like(C_WORDS),
    cpp: c_like(C_WORDS + " catch class concept constexpr decltype delete explicit final friend mutable namespace "
        + "new noexcept operator override private protected public requires template this throw try typename using "
        + "virtual"),
    python: { words: "and as assert async await break case class continue def del elif else except False finally "
        + "for from global if import in is lambda match None nonlocal not or pass raise return self True try while "
        + "with yield",
        line: "#", longs: ["\"\"\"", "'''"], quotes: "\"'" },
    javascript: { ...c_like("as async await break case catch class const continue debugger default delete do else "
        + "enum export extends false finally for from function get if implements import in instanceof interface let "
        + "new null of private public readonly return set static super switch this throw true try type typeof "
        + "undefined var void while yield"), longs: ["`"] },
    java: { ...c_like("abstract boolean break byte case catch char class const continue default do double else enum "
        + "extends false final finally float fun for if implements import in instanceof int interface is long "
        + "namespace new null object override package private protected public record return sealed short static "
        + "string super switch this throw throws true try using val var void when while"), longs: ["\"\"\""] },
    go: { ...c_like("any bool break byte case chan const continue default defer else error fallthrough false "
        + "float64 for func go goto if import int interface map nil package range return select string struct "
        + "switch true type var"),
        longs: ["`"] },
    rust: { ...c_like("as async await bool break const continue crate dyn else enum extern false fn for i32 i64 if "
        + "impl in let loop match mod move mut pub ref return self Self static str struct super trait true type u8 "
        + "u32 u64 unsafe use usize where while"), quotes: "\"" },
    bash: { words: "case do done elif else esac exit export fi for function if in local return set shift source "
        + "then until while", line: "#", quotes: "\"'" },
    sql: { words: "add all alter and as asc between by case count create delete desc distinct drop else end exists "
        + "foreign from group having in index inner insert into is join key left like limit not null offset on or "
        + "order outer primary references right select set table then union unique update values view when where "
        + "with",
        line: "--", block: ["/*", "*/"], quotes: "'\"", any_case: true },
    json: { words: "true false null", quotes: "\"" },
    yaml: { words: "true false null yes no", line: "#", quotes: "\"'" },
    css: { words: "important media import supports keyframes inherit initial none auto", block: ["/*", "*/"],
        quotes: "\"'" },
    html: { words: "", block: ["<!--", "-->"], quotes: "\"'", extra: "<\\/?[\\w:-]+|\\/?>" },
    lua: { words: "and break do else elseif end false for function if in local nil not or repeat return then true "
        + "until while", line: "--", quotes: "\"'" },
    ruby: { words: "and begin break case class def do else elsif end ensure false for if in module next nil not or "
        + "redo rescue retry return self super then true unless until when while yield", line: "#", quotes: "\"'" },
};
const ALSO = {
    "c++": "cpp", cc: "cpp", h: "c", glsl: "cpp", cuda: "cpp", "objective-c": "c", py: "python", python3: "python",
    js: "javascript", jsx: "javascript", ts: "javascript", tsx: "javascript", typescript: "javascript",
    kotlin: "java", "c#": "java",
    csharp: "java", cs: "java", swift: "go", golang: "go", rs: "rust", sh: "bash", shell: "bash", zsh: "bash",
    console: "bash", dockerfile: "bash", jsonc: "json", yml: "yaml", toml: "yaml", ini: "yaml", scss: "css",
    xml: "html", svg: "html", vue: "html", rb: "ruby",
};

const plainly = text => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
const rules = new Map();   /* by name of a language, made once: an expression whose groups are COLOURED */
const COLOURED = ["comment", "open", "string", "number", "word", "tag"];

function rules_of(name) {
    const key = LANGUAGES[name] ? name : ALSO[name];
    if (!Object.hasOwn(LANGUAGES, key ?? "") || rules.has(key)) return rules.get(key);
    const { words, line, block, longs = [], quotes, extra, any_case } = LANGUAGES[key];
    const opens = [...(block ? [block[0]] : []), ...longs].map(plainly).join("|");
    const strings = [...quotes].map(q => `${q}(?:[^${q}\\\\]|\\\\.)*${q}?`).join("|");
    const none = "(?!)", expression = new RegExp([line ? plainly(line) + ".*" : none, opens || none, strings,
        "\\b[0-9][\\w.]*", "[A-Za-z_]\\w*", extra || none].map(part => `(${part})`).join("|"), "g");
    rules.set(key, { expression, words: new Set(words.split(" ")), block, any_case });
    return rules.get(key);
}

/* What goes on from line to line: what would end a comment or a text that is open. */
const begin_colours = language => ({ rules: rules_of(language.toLowerCase()), until: "", kind: "" });

/* The end of what is open at i of a line; "": it goes on. */
function past_open(state, line, i) {
    const end = line.indexOf(state.until, i);
    if (end < 0) return line.length;
    const past = end + state.until.length;
    state.until = "";
    return past;
}

/* A line as nodes. */
function coloured(state, line) {
    const { rules: known } = state;
    if (!known) return line ? [line] : [];
    const out = [];
    let plain = 0;
    const add = (kind, begin, end) => {
        if (begin > plain) out.push(line.slice(plain, begin));
        if (end > begin) out.push(element("span", { class: "code-" + kind }, line.slice(begin, end)));
        plain = end;
    };
    if (state.until) add(state.kind, 0, past_open(state, line, 0));
    known.expression.lastIndex = plain;
    for (let found; (found = known.expression.exec(line));) {
        const text = found[0], kind = COLOURED[found.findIndex((group, k) => k && group !== undefined) - 1];
        if (kind === "open") {
            const comment = text === known.block?.[0];
            Object.assign(state, { until: comment ? known.block[1] : text, kind: comment ? "comment" : "string" });
            add(state.kind, found.index, past_open(state, line, found.index + text.length));
            known.expression.lastIndex = plain;
        } else if (kind !== "word") {
            add(kind, found.index, found.index + text.length);
        } else if (known.words.has(known.any_case ? text.toLowerCase() : text)) {
            add("word", found.index, found.index + text.length);
        }
    }
    if (plain < line.length) out.push(line.slice(plain));
    return out;
}
