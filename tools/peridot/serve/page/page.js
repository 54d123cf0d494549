const $ = id => document.getElementById(id);
const NUMBERS = {   /* settings that requests carry, with the step of their inputs */
    temperature: ["Temperature", 0.05], top_p: ["Top-p", 0.01], top_k: ["Top-k", 1], min_p: ["Min-p", 0.01],
    repeat_penalty: ["Repeat penalty", 0.05], max_tokens: ["Longest reply (tokens)", 1], seed: ["Seed", 1],
};

/* ---- storage: each conversation under a key of its own, so that tabs don't overwrite each other's ---- */

const PREFIX = "peridot.conversation.";
const load = (key, otherwise) => {
    try { return JSON.parse(localStorage.getItem(key)) ?? otherwise; } catch { return otherwise; }
};
const fits = (key, value) => {
    try { localStorage.setItem(key, JSON.stringify(value)); } catch { return false; }
    return true;
};
const full = () => notice("The browser's storage is full: delete old conversations to keep this one.");
const save = (key, value) => fits(key, value) || full();
const conversations = () => Object.keys(localStorage).filter(key => key.startsWith(PREFIX)).map(key => load(key, null))
    .filter(c => c && Array.isArray(c.messages)).sort((a, b) => b.changed - a.changed);
const create = () => ({
    id: Date.now().toString(36) + Math.random().toString(36).slice(2, 8), title: "", system: "",
    messages: [], changed: Date.now(),
});
const keep = c => {
    c.changed = Date.now();
    if (fits(PREFIX + c.id, c)) return;
    if (has_images(c) && fits(PREFIX + c.id, without_images(c)))
        notice("The browser's storage has no room for this conversation's images: they are gone once it is left.");
    else full();
};
const keep_if_there = c => { if (localStorage.getItem(PREFIX + c.id) !== null) keep(c); };   /* it may be deleted */

let settings = load("peridot.settings", {});
let current = conversations().find(c => c.id === load("peridot.current", "")) ?? create();
let adapters = [];    /* names of the model's */
let running = null;   /* { abort, conversation, question, call } of the reply that is being written */

/* ---- what is seen ---- */

const notice = text => { $("notice").textContent = text; };
const at_end = () => $("log").scrollHeight - $("log").scrollTop - $("log").clientHeight < 60;
const to_end = () => { $("log").scrollTop = $("log").scrollHeight; };

function foot_of(i) {
    const m = current.messages[i], last = i === current.messages.length - 1;
    const foot = element("div", { class: "foot" });
    if (running?.conversation === current && last) return foot;
    const add = (name, call) => foot.append(element("button", { type: "button", class: "plain", onclick: call }, name));
    if (m.content) foot.append(copy_button(() => m.content));
    if (m.role === "user") add("Edit", () => edit(i));
    if (last) add("Retry", retry);
    if (m.note && (last || m.content)) foot.append(element("span", { class: "note" }, m.note));
    if (m.error) foot.append(element("span", { class: "note error" }, m.error));
    return foot;
}

/* What the model thought, folded. */
function thought_of(m) {
    const thinking = running?.conversation === current && m === current.messages.at(-1) && !m.content;
    return element("details", { class: "thought", ...(m.thought ? {} : { hidden: "" }) },
        element("summary", {}, thinking ? "Thinking …" : "Thought"), element("div", {}, m.thought ?? ""));
}

/* Those that are as they were stay, and so does what is selected in them. */
const drawn_messages = new WeakMap();
function message(i) {
    const m = current.messages[i], last = i === current.messages.length - 1, was = drawn_messages.get(m);
    const busy = last && running?.conversation === current;
    const key = JSON.stringify([m.content, m.thought, m.note, m.error, m.n_lost, i, last, busy]);
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
        element("div", { class: "body", ...(user && !m.content ? { hidden: "" } : {}) },
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
    const busy = running?.conversation === current, n = count_dropped(current);
    const articles = current.messages.map((_, i) => message(i));
    articles.forEach((article, i) => article.classList.toggle("dropped", i < n));
    if (n) articles.splice(n, 0, element("p", { class: "cut" },
        "The context is full: the model no longer reads the messages above this line."));
    if (!current.messages.length) articles.push(element("p", { id: "empty" }, "Ask the model something."));
    const kept = new Set(articles);
    for (const there of [...$("log").childNodes]) if (!kept.has(there)) there.remove();
    articles.forEach((article, i) => {
        if ($("log").childNodes[i] !== article) $("log").insertBefore(article, $("log").childNodes[i] ?? null);
    });
    $("log").setAttribute("aria-busy", busy);
    $("send").hidden = Boolean(running);
    $("stop").hidden = !running;
    show_list();
}

function redraw(c) {
    const follow = at_end();
    show();
    if (c === current && follow) to_end();
}

function show_list() {
    const all = conversations();
    $("list").replaceChildren(...all.map(c => {
        const open = element("button", { type: "button", class: "open", onclick: () => choose(c), title: c.title },
            c.title || "Untitled");
        if (c.id === current.id) open.setAttribute("aria-current", "true");
        return element("li", {}, open, element("button", {
            type: "button", class: "plain", "aria-label": "Delete " + (c.title || "Untitled"), onclick: () => remove(c),
        }, "✕"));
    }));
}

function choose(c) {
    current = running?.conversation.id === c.id ? running.conversation : c;
    save("peridot.current", current.id);
    menu(false);
    notice("");
    show();
    to_end();
    $("text").focus();
}

function remove(c) {
    if (!confirm("Delete \u201c" + (c.title || "Untitled") + "\u201d?")) return;
    if (running?.conversation.id === c.id) running.abort.abort();
    localStorage.removeItem(PREFIX + c.id);
    if (c.id === current.id) choose(conversations()[0] ?? create());
    else show_list();
}

function menu(open) {
    document.body.classList.toggle("menu", open);
    $("menu").setAttribute("aria-expanded", open);
    if (open) $("new").focus();
}

/* ---- asking ---- */

const headers = () => ({
    "Content-Type": "application/json", ...(settings.key ? { Authorization: "Bearer " + settings.key } : {}),
});

async function failure(response) {
    let text = "";
    try {
        const error = (await response.json()).error;
        text = error.message;
        if (error.code === "context_length_exceeded")
            text += " Start a new conversation, or edit a message to shorten this one.";
    } catch { text = "The server's answer has status " + response.status + "."; }
    return response.status === 401 ? text + " Enter the API key in the settings." : text;
}

/* The data of server-sent events, as it comes. */
async function* events(response) {
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        const lines = (rest + value).split(/\r?\n/);
        rest = lines.pop();
        for (const line of lines)
            if (line.startsWith("data:")) yield line.slice(5).trim();
    }
}

function request_of(c) {
    const numbers = Object.fromEntries(
        Object.keys(NUMBERS).filter(key => Number.isFinite(settings[key])).map(key => [key, settings[key]]));
    const messages = c.messages.slice(0, -1).flatMap(to_messages);
    if (c.system) messages.unshift({ role: "system", content: c.system });
    const think = settings.think ? { enable_thinking: settings.think === "on" } : {};
    const model = adapter() ? { model: adapter() } : {};
    return { messages, full: "drop", stream: true, stream_options: { include_usage: true }, ...request_tools(),
        ...think, ...model, ...numbers };
}

async function read_reply(c, reply, signal) {
    const begun = performance.now();
    let first = 0, last = 0, usage = null, finish = "", drawn = false, drawing = 0;
    const response = await ask_server("v1/chat/completions", request_of(c), signal), calls = [];
    if (!response.ok) throw new Error(await failure(response));
    for await (const data of events(response)) {
        if (data === "[DONE]") break;
        const event = JSON.parse(data), choice = event.choices?.[0];
        if (event.error) throw new Error(event.error.message);
        usage = event.usage ?? usage;
        if (event.dropped_messages !== undefined && event.dropped_messages !== dropped(c)) {
            reply.dropped = event.dropped_messages;
            redraw(c);
        }
        finish = choice?.finish_reason ?? finish;
        take_calls(calls, choice?.delta?.tool_calls ?? []);
        if (!choice?.delta?.content && !choice?.delta?.reasoning_content) continue;
        last = performance.now();
        first ||= last;
        reply.content += choice.delta.content ?? "";
        if (choice.delta.reasoning_content) reply.thought = (reply.thought ?? "") + choice.delta.reasoning_content;
        if (drawn || c !== current) continue;
        drawn = true;   /* a long reply is drawn for a part of the time only */
        setTimeout(() => requestAnimationFrame(() => {
            const begins = performance.now();
            drawn = false;
            draw(c, reply);
            drawing = performance.now() - begins;
        }), 3 * drawing);
    }
    const n = usage?.completion_tokens, n_thought = usage?.completion_tokens_details?.reasoning_tokens, parts = [];
    if (n_thought) parts.push(n_thought + (n_thought === 1 ? " token of thought" : " tokens of thought"));
    if (n) parts.push(n + (n === 1 ? " token" : " tokens"));
    if (n > 1 && last > first) parts.push(((n - 1) / (last - first) * 1000).toFixed(1) + " tokens/s");
    if (first) parts.push("first token after " + ((first - begun) / 1000).toFixed(2) + " s");
    if (finish === "length")
        parts.push(Number.isFinite(settings.max_tokens)
            ? "reached the longest length" : "ended to leave room for the next turn");
    reply.note = parts.join(" · ");
    if (finish === "tool_calls") reply.tool_calls = calls;   /* else they were cut */
}

let live = null;   /* { body, text, n }: where a reply is drawn as it comes, and how much of it is */

/* The reply as far as it has come. */
function draw(c, reply) {
    const body = $("log").lastElementChild?.querySelector(".body"), follow = at_end();
    if (c !== current || !body || running?.conversation !== c) return;
    if (live?.body !== body) {
        body.replaceChildren();
        live = { body, text: markdown(body), n: 0 };
    }
    live.text.write(reply.content.slice(live.n));
    live.n = reply.content.length;
    live.text.draw();
    const thought = $("log").lastElementChild.querySelector(".thought");   /* which stays as open as it is */
    thought.hidden = !reply.thought;
    thought.firstElementChild.textContent = reply.content ? "Thought" : "Thinking …";
    thought.lastElementChild.textContent = reply.thought ?? "";
    if (follow) to_end();
}

async function answer(c) {
    const abort = new AbortController();
    let reply;
    running = { abort, conversation: c, question: null, call: null };
    notice("");
    to_end();
    try {
        do {
            reply = { role: "assistant", content: "" };
            c.messages.push(reply);
            redraw(c);
            await find_tools(abort.signal);
            await read_reply(c, reply, abort.signal);
            if (reply.tool_calls) await run_calls(c, reply, abort.signal);
        } while (reply.tool_calls);
    } catch (error) {
        if (error.name === "AbortError") reply.note = "stopped";
        else reply.error = error instanceof TypeError ? "The server does not respond." : error.message;
    }
    running = null;
    keep_if_there(c);
    redraw(c);
}

function ask(text, more = {}) {
    if (running || (!text.trim() && !more.images)) return;
    current.messages.push({ role: "user", content: text.trim() && text, ...more });
    current.title ||= text.trim().split("\n")[0].slice(0, 60) || "Image";
    keep(current);
    save("peridot.current", current.id);
    answer(current);
}

function retry() {
    if (running) return;
    current.messages.splice(current.messages.findLastIndex(m => m.role === "user") + 1);   /* all of the turn */
    answer(current);
}

function edit(i) {
    if (running) return;
    const c = current, { images } = c.messages[i];
    $("edit-text").value = c.messages[i].content;
    $("edit").returnValue = "";
    $("edit").onclose = () => {
        const empty = !$("edit-text").value.trim() && !images;
        if ($("edit").returnValue !== "send" || empty || running) return;
        c.messages.splice(i);
        ask($("edit-text").value, images ? { images } : {});
    };
    $("edit").showModal();
}

/* ---- controls ---- */

const fit = area => {
    area.style.height = "auto";
    area.style.height = area.scrollHeight + 2 + "px";
};

for (const [key, [label, step]] of Object.entries(NUMBERS)) {
    const input = element("input", { id: "set-" + key, type: "number", step, min: 0, inputmode: "decimal" });
    input.value = settings[key] ?? "";
    $("numbers").append(element("div", {}, element("label", { for: "set-" + key }, label), input));
}
$("open-settings").addEventListener("click", () => {
    $("system").value = current.system;
    $("key").value = settings.key ?? "";
    $("think").value = settings.think ?? "";
    $("tools").value = settings.tools ?? "";
    $("adapter").value = adapter();
    show_tools();
    $("settings").showModal();
});
$("settings").addEventListener("close", () => {
    current.system = $("system").value.trim();
    if (current.messages.length) keep(current);
    settings = { key: $("key").value, think: $("think").value, tools: $("tools").value,
        adapter: $("adapter").value };
    for (const key of Object.keys(NUMBERS)) {
        const value = $("set-" + key).value;
        if (value !== "") settings[key] = Number(value);
    }
    save("peridot.settings", settings);
    find_model();
});
$("composer").addEventListener("submit", event => {
    event.preventDefault();
    if (running || n_adding) return;
    ask($("text").value, take_images());
    $("text").value = "";
    fit($("text"));
    $("text").focus();
});
$("text").addEventListener("input", () => fit($("text")));
$("text").addEventListener("keydown", event => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    $("composer").requestSubmit();
});
$("stop").addEventListener("click", () => {
    running?.abort.abort();
    $("text").focus();
});
$("new").addEventListener("click", () => choose(create()));
$("menu").addEventListener("click", () => menu(!document.body.classList.contains("menu")));
document.addEventListener("keydown", event => {
    if (event.key !== "Escape" || document.querySelector("dialog[open]")) return;
    if (document.body.classList.contains("menu")) menu(false);
    else running?.abort.abort();
});
document.querySelector("main").addEventListener("pointerdown", event => {
    if (event.target.id !== "menu") menu(false);
});
window.addEventListener("storage", show_list);
window.addEventListener("resize", () => fit($("text")));

/* The one that is chosen, of those that the server has for its model; "": none. */
const adapter = () => adapters.includes(settings.adapter) ? settings.adapter : "";

function show_adapters() {
    $("adapter-box").hidden = !adapters.length;
    $("adapter").replaceChildren(...["", ...adapters].map(id => element("option", { value: id }, id || "None")));
}

async function find_model() {
    try {
        const response = await fetch("v1/models", { headers: headers() });
        if (!response.ok) return notice(await failure(response));
        const [model, ...others] = (await response.json()).data;
        adapters = others.filter(each => each.parent === model.id).map(each => each.id);
        show_adapters();
        $("model").textContent = model.id + (adapter() && " · " + adapter());
        sees = Boolean(model.architecture?.input_modalities.includes("image"));
        show_images();
        document.title = $("model").textContent + " · Peridot";
        notice("");
        has_tools = Boolean((await (await fetch("health")).json()).tools);
        await find_tools();
    } catch (error) { notice(error instanceof TypeError ? "The server does not respond." : error.message); }
}

listen_for_images();
show();
to_end();
find_model();
