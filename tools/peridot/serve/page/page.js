const $ = id => document.getElementById(id);
const NUMBERS = {   /* settings that requests carry, and what the server takes: the least, the most, the step */
    temperature: ["Temperature", 0, 2, "any"], top_p: ["Top-p", 0, 1, "any"], top_k: ["Top-k", 0, 1e9, 1],
    min_p: ["Min-p", 0, 1, "any"], repeat_penalty: ["Repeat penalty", 0, 100, "any"],
    max_tokens: ["Longest reply (tokens)", 1, 1e9, 1], seed: ["Seed", -Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, 1],
};

let settings = load("peridot.settings", {});
let current = create({ system: settings.system ?? "" });
let models = [];      /* that the server has, as it lists them */
let adapters = [];    /* names of the first model's */

/* The model that is chosen; undefined: not known yet. */
const model = () => models.find(m => m.id === settings.model) ?? models[0];
const context = () => model()?.context_length ?? 0;   /* tokens that a conversation may have; 0: not known */

/* ---- what is seen ---- */

const notice = text => { $("notice").textContent = [storage_notice, text].filter(Boolean).join(" "); };
const at_end = () => $("log").scrollHeight - $("log").scrollTop - $("log").clientHeight < 60;
const to_end = () => { $("log").scrollTop = $("log").scrollHeight; };

function foot_of(i) {
    const m = current.messages[i], last = i === current.messages.length - 1;
    const foot = element("div", { class: "foot" });
    if (run_of(current) && last) {
        foot.append(element("span", { class: "note" }, progress_of(run_of(current))));
        return foot;
    }
    const add = (name, call) => foot.append(element("button", { type: "button", class: "plain", onclick: call }, name));
    if (m.content) foot.append(copy_button(() => m.content));
    if (!m.tool_calls) add("Edit", () => edit(i));
    if (last) add("Retry", retry);
    if (last && m.cut && m.content && !m.tool_calls) add("Continue", go_on);
    if (m.fork) foot.append(ways_of(m, i));
    if (m.note && (last || m.content)) foot.append(element("span", { class: "note" }, m.note));
    if (m.error) foot.append(element("span", { class: "note error" }, m.error));
    return foot;
}

/* Which way from here is shown, of how many. */
function ways_of({ fork }, i) {
    const step = (text, name, by) => element("button", { type: "button", class: "plain", "aria-label": name,
        onclick: () => go_way(i, by) }, text);
    return element("span", { class: "ways", role: "group", "aria-label": "Versions" },
        step("‹", "The version before", -1), element("span", { class: "note" },
            fork.shown + 1 + " of " + fork.ways.length), step("›", "The next version", 1));
}

async function go_way(i, by) {
    if (run_of(current)) return;
    take_way(current, i, by);
    await keep_if_there(current);
    show();
}

/* What the model thought, folded. */
function thought_of(m) {
    const thinking = run_of(current) && m === current.messages.at(-1) && !m.content;
    return element("details", { class: "thought", ...(m.thought ? {} : { hidden: "" }) },
        element("summary", {}, thinking ? "Thinking …" : "Thought"), element("div", {}, m.thought ?? ""));
}

/* Those that are as they were stay, and so does what is selected in them. */
const drawn_messages = new WeakMap();
function message(i) {
    const m = current.messages[i], last = i === current.messages.length - 1, was = drawn_messages.get(m);
    const busy = last && Boolean(run_of(current));
    const key = JSON.stringify([m.content, m.thought, m.note, m.error, m.n_lost, i, last, busy, m.fork?.shown,
        m.fork?.ways.length]);
    if (was?.key === key && !m.tool_calls && !current.messages[i - 1]?.tool_calls) return was.article;
    const article = new_message(i);
    drawn_messages.set(m, { key, article });
    return article;
}

function new_message(i) {
    const m = current.messages[i], user = m.role === "user", goes_on = current.messages[i - 1]?.tool_calls;
    return element("article", { class: m.role },
        ...(goes_on ? [] : [element("h2", { class: "who" }, user ? "You" : "Model")]),
        ...(user ? [] : [thought_of(m)]),
        ...images_of(m),
        ...texts_of(m),
        element("div", { class: "body", dir: "auto", ...(user && !m.content ? { hidden: "" } : {}) },
            user ? [m.content] : [...marked_up(m.content).childNodes]),
        ...(m.tool_calls ?? []).map(call_of),
        foot_of(i));
}

/* How many messages of the last request the model no longer reads, as the server said; and those that these are. */
const dropped = c => c.messages.findLast(m => m.dropped !== undefined)?.dropped ?? 0;
function count_dropped(c) {
    let n = 0;
    for (let left = dropped(c); left > 0 && n < c.messages.length; n++) left -= to_messages(c.messages[n]).length;
    return n;
}

function show() {
    const busy = Boolean(run_of(current)), n = count_dropped(current);
    const articles = current.messages.map((_, i) => message(i));
    articles.forEach((article, i) => article.classList.toggle("dropped", i < n));
    if (n) articles.splice(n, 0, element("p", { class: "cut" },
        "The context is full: the model no longer reads the messages above this line."));
    if (!current.messages.length) articles.push(element("p", { id: "empty" }, current.temporary
        ? "This conversation is not kept: it is gone when you leave it." : "Ask the model something."));
    const kept = new Set(articles);
    for (const there of [...$("log").childNodes]) if (!kept.has(there)) there.remove();
    articles.forEach((article, i) => {
        if ($("log").childNodes[i] !== article) $("log").insertBefore(article, $("log").childNodes[i] ?? null);
    });
    $("log").setAttribute("aria-busy", busy);
    $("send").hidden = busy;
    $("stop").hidden = !busy;
    show_room();
    show_list();
}

function redraw(c) {
    const follow = at_end();
    show();
    if (c === current && follow) to_end();
}

/* How much of the context the conversation has, as its last request said. */
function show_room() {
    const used = current.messages.findLast(m => m.n_used)?.n_used;
    const ctx = context();
    $("room").hidden = !used || !ctx;
    if (!used || !ctx) return;
    $("room-meter").value = Math.min(1, used / ctx);
    $("room-text").textContent = used.toLocaleString() + " of " + ctx.toLocaleString() + " tokens";
}

/* For those who listen: whole replies, once they are there. */
const say = text => { $("said").textContent = text; };

let live = null;   /* { body, text, n }: where a reply is drawn as it comes, and how much of it is */

/* The reply as far as it has come. */
function draw(c, reply) {
    const body = $("log").lastElementChild?.querySelector(".body"), follow = at_end();
    const run = run_of(c);
    if (c !== current || !body || !run) return;
    if (live?.body !== body) {
        body.replaceChildren();
        live = { body, text: markdown(body), n: 0 };
    }
    if (live.n > reply.content.length) return void (live = null);   /* it is read from its beginning again */
    live.text.write(reply.content.slice(live.n));
    live.n = reply.content.length;
    live.text.draw();
    const thought = $("log").lastElementChild.querySelector(".thought");   /* which stays as open as it is */
    thought.hidden = !reply.thought;
    thought.firstElementChild.textContent = reply.content ? "Thought" : "Thinking …";
    thought.lastElementChild.textContent = reply.thought ?? "";
    show_progress(c);
    if (follow) to_end();
}

function show_progress(c) {
    const run = run_of(c), foot = $("log").lastElementChild?.querySelector(".foot");
    if (c !== current || !run || !foot) return;
    foot.replaceChildren(element("span", { class: "note" }, progress_of(run)));
}

async function ask(text, more = {}) {
    const c = current;
    if (run_of(c) || (!text.trim() && !more.images && !more.texts)) return;
    c.messages.push({ role: "user", content: text.trim() && text, ...more });
    c.title ||= text.trim().split("\n")[0].slice(0, 60) || more.texts?.[0].name || "Image";
    const kept = keep(c);
    if (!c.temporary) save("peridot.current", c.id);
    const answered = answer(c);
    await kept;
    await answered;
}

function retry() {
    const c = current, i = c.messages.findLastIndex(m => m.role === "user") + 1;   /* all of the turn */
    if (run_of(c)) return;
    const fork = part_ways(c, i);
    answer(c, new_reply(c, fork ? { fork } : {}));
}

/* A reply that was cut, from there on. */
function go_on() {
    const c = current, reply = c.messages.at(-1);
    if (run_of(c)) return;
    reply.before = reply.content;
    for (const key of ["cut", "note", "error"]) delete reply[key];
    answer(c, Object.assign(reply, stream_of(c)));
}

/* Another message of the user's, which is answered, or other words of the model's. */
function edit(i) {
    const c = current, { role, images, texts: files } = c.messages[i], user = role === "user";
    if (run_of(c)) return;
    $("edit-text").value = c.messages[i].content;
    $("edit-note").textContent = user ? "The model answers again. What was there stays, as another version."
        : "What the model has said is changed. What was there stays, as another version.";
    $("edit-send").textContent = user ? "Send" : "Save";
    $("edit").returnValue = "";
    $("edit").onclose = async () => {
        const text = $("edit-text").value, empty = !text.trim() && !images && !files;
        if ($("edit").returnValue !== "send" || empty || run_of(c) || c !== current) return;
        const more = { ...(images ? { images } : {}), ...(files ? { texts: files } : {}), fork: part_ways(c, i) };
        if (user) return ask(text, more);
        c.messages.push({ role, content: text, note: "edited", ...more });
        await keep_if_there(c);
        show();
    };
    $("edit").showModal();
}

/* ---- controls ---- */

const fit = area => {
    area.style.height = "auto";
    area.style.height = area.scrollHeight + 2 + "px";
};

for (const [key, [label, min, max, step]] of Object.entries(NUMBERS)) {
    const input = element("input", { id: "set-" + key, type: "number", step, min, max, inputmode: "decimal" });
    input.value = settings[key] ?? "";
    $("numbers").append(element("div", {}, element("label", { for: "set-" + key }, label), input));
}
$("open-settings").addEventListener("click", async () => {
    $("system").value = current.system;
    $("system-default").value = settings.system ?? "";
    for (const key of Object.keys(NUMBERS)) $("set-" + key).value = settings[key] ?? "";
    $("key").value = settings.key ?? "";
    $("think").value = settings.think ?? "";
    $("tools").value = settings.tools ?? "";
    $("adapter").value = adapter();
    show_tools();
    $("settings").showModal();
    await show_presets().catch(() => {});   /* without storage there are none */
});
$("settings").addEventListener("close", () => {
    const system = $("system-default").value.trim(), begun = current.messages.length > 0;
    const as_new = !begun && current.system === (settings.system ?? "") && $("system").value === current.system;
    current.system = as_new ? system : $("system").value.trim();
    if (begun) keep_if_there(current);
    settings = { ...settings, key: $("key").value, think: $("think").value, tools: $("tools").value,
        adapter: $("adapter").value, system };
    for (const key of Object.keys(NUMBERS)) {
        const input = $("set-" + key);
        if (input.value !== "" && input.validity.valid) settings[key] = Number(input.value);
        else if (input.validity.valid) delete settings[key];   /* else what it was: Escape closes the settings, too */
    }
    save("peridot.settings", settings);
    find_model();
});
$("composer").addEventListener("submit", event => {
    event.preventDefault();
    if (run_of(current) || n_adding) return;
    ask($("text").value, { ...take_texts(), ...take_images() });
    $("text").value = "";
    fit($("text"));
    $("text").focus();
});
$("pick").addEventListener("change", () => {
    settings.model = $("pick").value;
    save("peridot.settings", settings);
    show_model();
});
$("text").addEventListener("input", () => fit($("text")));
$("text").addEventListener("keydown", event => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    $("composer").requestSubmit();
});
const stop_reply = () => { if (run_of(current)) stop(run_of(current)); };
$("stop").addEventListener("click", () => {
    stop_reply();
    $("text").focus();
});

/* Keys of the whole page, by what a KeyboardEvent says, with Ctrl or Command where that is written. */
const focus_search = () => {
    menu(true);
    $("search").focus();
};
const last_of = role => current.messages.findLastIndex(m => m.role === role);
const KEYS = [
    ["Enter", "sends; Shift+Enter starts a new line"],
    ["Escape", "stops the reply", () => document.body.classList.contains("menu") ? menu(false) : stop_reply()],
    ["Ctrl+K", "searches the conversations", focus_search],
    ["Ctrl+Shift+O", "begins a conversation", () => begin()],
    ["Ctrl+Shift+E", "edits your last message", () => { if (last_of("user") >= 0) edit(last_of("user")); }],
    ["Ctrl+,", "opens the settings", () => $("open-settings").click()],
];
const pressed = e => (e.ctrlKey || e.metaKey ? "Ctrl+" : "") + (e.shiftKey ? "Shift+" : "")
    + (e.key.length === 1 ? e.key.toUpperCase() : e.key);

$("keys").append(...KEYS.flatMap(([key, what]) => [element("dt", {}, element("kbd", {}, key)),
    element("dd", {}, what)]));
document.addEventListener("keydown", event => {
    const call = KEYS.find(([key]) => key === pressed(event))?.[2];
    if (!call || document.querySelector("dialog[open]")) return;
    event.preventDefault();
    call();
});
document.querySelector("main").addEventListener("pointerdown", event => {
    if (event.target.id !== "menu") menu(false);
});
window.addEventListener("resize", () => fit($("text")));

/* The one that is chosen, of those that the server has for its first model; "": none. */
const adapter = () => model() === models[0] && adapters.includes(settings.adapter) ? settings.adapter : "";

function show_adapters() {
    $("adapter-box").hidden = !adapters.length;
    $("adapter").replaceChildren(...["", ...adapters].map(id => element("option", { value: id }, id || "None")));
}

/* What is known of a model: one that was never loaded has said nothing yet. */
const weight = size => size < 1e9 ? Math.round(size / 1e6) + " MB" : (size / 1e9).toPrecision(2) + " GB";
const abilities = m => [m.meta && weight(m.meta.size), m.architecture?.input_modalities.includes("image") && "sees images",
    m.thinks && "thinks",
    !m.loaded && "is loaded when it is asked"].filter(Boolean).join(", ");

function show_model() {
    const m = model();
    $("model").textContent = m.id + (adapter() && " · " + adapter());
    $("model").hidden = models.length > 1;
    $("pick").hidden = models.length < 2;
    $("pick").replaceChildren(...models.map(each => element("option", { value: each.id,
        ...(each === m ? { selected: "" } : {}) }, each.id + (abilities(each) && " (" + abilities(each) + ")"))));
    sees = Boolean(m.architecture?.input_modalities.includes("image"));
    show_images();
    show_room();
    document.title = $("model").textContent + " · Peridot";
}

/* What holds where a setting is empty. */
async function show_defaults() {
    const response = await fetch("props", { headers: headers() });
    if (!response.ok) return;
    const params = (await response.json()).default_generation_settings?.params ?? {};
    for (const key of Object.keys(NUMBERS))
        if (Number.isFinite(params[key]) && params[key] >= 0 && key !== "seed")
            $("set-" + key).placeholder = Number(params[key].toFixed(4));
}

async function find_model() {
    try {
        const response = await fetch("v1/models", { headers: headers() });
        if (!response.ok) return notice(await failure(response));
        const all = (await response.json()).data;
        models = all.filter(each => !each.parent);
        adapters = all.filter(each => each.parent === models[0].id).map(each => each.id);
        show_adapters();
        show_model();
        notice("");
        has_tools = Boolean((await (await fetch("health")).json()).tools);
        await find_tools();
        await show_defaults();
    } catch (error) { notice(error instanceof TypeError ? "The server does not respond." : error.message); }
}

/* Nothing is kept of what goes wrong because the page is left. */
let leaving = false;
window.addEventListener("pagehide", () => { leaving = true; });
window.addEventListener("pageshow", () => { leaving = false; });

async function start() {
    try {
        await read_list();
        const last = await find(load("peridot.current", ""));
        if (last && !current.messages.length) await open_conversation(last);
    } catch { notice("The browser's storage does not work: conversations are gone when the page is left."); }
    show_list();
}

listen_for_images();
listen_to_list();
listen_to_presets();
show();
find_model();
start();
