/* ---- the list of conversations: by date, searched, renamed, pinned, exported and imported ---- */

const day = time => new Date(time).setHours(0, 0, 0, 0);

function period(c) {
    const days = Math.round((day(Date.now()) - day(c.changed)) / 86400000);
    if (c.pinned) return "Pinned";
    if (days < 1) return "Today";
    if (days < 2) return "Yesterday";
    if (days < 8) return "The last seven days";
    return new Date(c.changed).toLocaleDateString(undefined, { month: "long", year: "numeric" });
}

let searched = null;   /* the ids that were found; NULL: nothing is searched */
let list_drawn = "";

function item_of(c) {
    const title = c.title || "Untitled";
    const open = element("button", { type: "button", class: "open", dir: "auto", onclick: () => choose(c.id),
        title: title + "\n" + new Date(c.changed).toLocaleString() }, title);
    if (c.id === current.id) open.setAttribute("aria-current", "true");
    if (runs.has(c.id)) open.append(element("span", { class: "busy", role: "img", "aria-label": "(is answered)" }));
    return element("li", {}, open, element("button", {
        type: "button", class: "plain", "aria-label": "Manage " + title, onclick: () => manage(c.id) }, "⋯"));
}

/* Drawn anew only where something of it changed. */
function show_list() {
    const all = conversations().filter(c => !searched || searched.has(c.id));
    const key = JSON.stringify([current.id, [...runs.keys()], searched && [...searched], all, day(Date.now())]);
    if (key === list_drawn) return;
    list_drawn = key;
    const groups = Map.groupBy ? Map.groupBy(all, period) : new Map([["", all]]);
    $("list").replaceChildren(...[...groups].map(([name, some]) => element("section", {},
        ...(name ? [element("h2", {}, name)] : []), element("ul", {}, ...some.map(item_of)))));
    $("none").hidden = !searched || all.length > 0;
}

let searching = 0;
async function search() {
    const text = $("search").value.trim(), mine = ++searching;
    const found = text ? await search_conversations(text) : null;
    if (mine !== searching) return;   /* another was begun */
    searched = found;
    show_list();
}

/* A conversation as it is now: here, or in the store. */
async function open_conversation(c) {
    current = run_of(c)?.conversation ?? c;
    if (!c.temporary) save("peridot.current", current.id);
    notice("");
    show();
    to_end();
    await take_up(current);
}

async function choose(id) {
    menu(false);
    const c = await find(id);
    if (!c) return;
    $("text").focus();
    await open_conversation(c);
}

const begin = (more = {}) => {
    menu(false);
    $("text").focus();
    return open_conversation(create({ system: settings.system ?? "", ...more }));
};

/* What another tab, or a dialog, has made of it. */
function take_in(c) {
    if (c.id === current.id && !run_of(c)) {
        const at_bottom = at_end();
        current = c;
        show();
        if (at_bottom) to_end();
        take_up(c);
    } else show_list();
}

async function change(id, call) {
    const c = run_of({ id })?.conversation ?? (id === current.id ? current : await find(id));
    if (!c) return;
    const { changed } = c;
    call(c);
    await keep(c);
    c.changed = changed;   /* it is no later for that */
    listed.set(id, about(c));
    await write(c);
    take_in(c);
}

async function remove(id) {
    run_of({ id })?.abort.abort();
    await forget(id);
    const [first] = conversations();
    if (id !== current.id) show_list();
    else await open_conversation((first && await find(first.id)) ?? create());
}

/* ---- the dialog of one ---- */

const download = (name, type, text) => {
    const url = URL.createObjectURL(new Blob([text], { type }));
    element("a", { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
};
const file_name = c => c.title.replace(/[^\p{L}\p{N} _-]+/gu, "").trim().slice(0, 60) || "conversation";

const as_markdown = c => ["# " + (c.title || "Untitled"), ...(c.system ? ["*System:* " + c.system] : []),
    ...c.messages.flatMap(m => [m.role === "user" ? "## You" : "## Model",
        ...(m.images?.length ? ["(" + counted(m.images.length, "image") + ")"] : []), with_texts(m)]),
].filter(Boolean).join("\n\n") + "\n";

const as_json = (all, more = {}) => JSON.stringify({ peridot: 1, conversations: all, ...more }, null, 1);

async function manage(id) {
    const { title, pinned } = listed.get(id) ?? {};
    $("manage-name").value = title ?? "";
    $("manage-pin").checked = Boolean(pinned);
    $("manage").returnValue = "";
    $("manage").onclose = () => manage_as($("manage").returnValue, id);
    $("manage").showModal();
}

async function manage_as(what, id) {
    if (!what) return;
    const c = await find(id);
    if (what === "delete") {
        if (confirm("Delete “" + (c?.title || "Untitled") + "”?")) await remove(id);
    } else if (what === "json" && c) download(file_name(c) + ".json", "application/json", as_json([c]));
    else if (what === "markdown" && c) download(file_name(c) + ".md", "text/markdown", as_markdown(c));
    else if (what === "save") await change(id, it => {
        it.title = $("manage-name").value.trim() || it.title;
        it.pinned = $("manage-pin").checked;
    });
}

async function export_all() {
    const all = await in_tables("readonly", table => table.getAll());
    download("peridot-conversations.json", "application/json", as_json(all, { presets: await find_presets() }));
}

/* ---- import: a file is anybody's, so each part of it is looked at ---- */

const MAX_NAME = 200;   /* characters of a conversation's, and of a preset's */
const is_text = value => typeof value === "string";
const is_image = url => is_text(url) && /^data:image\/(png|jpeg|webp|gif);base64,[A-Za-z0-9+/=]*$/.test(url);

function take_message(m) {
    if (!["user", "assistant"].includes(m?.role) || !is_text(m.content)) throw new Error();
    const images = Array.isArray(m.images) ? m.images.filter(is_image).slice(0, MAX_IMAGES) : [];
    const texts = (Array.isArray(m.texts) ? m.texts : []).filter(each => is_text(each?.name) && is_text(each.text))
        .map(({ name, text }) => ({ name, text }));
    const calls = (Array.isArray(m.tool_calls) ? m.tool_calls : []).map(({ id, function: f, result, source }) => {
        if (![id, f?.name, f?.arguments].every(is_text)) throw new Error();
        return { id, function: { name: f.name, arguments: f.arguments }, ...(is_text(result) ? { result } : {}),
            ...(is_text(source) ? { source } : {}) };
    });
    return { role: m.role, content: m.content, ...(is_text(m.thought) ? { thought: m.thought } : {}),
        ...(is_text(m.note) ? { note: m.note } : {}), ...(images.length ? { images } : {}),
        ...(texts.length ? { texts } : {}), ...(calls.length ? { tool_calls: calls } : {}), ...fork_of_file(m.fork) };
}

function fork_of_file(fork) {
    if (!fork || !Array.isArray(fork.ways) || !Number.isInteger(fork.shown) || fork.ways[fork.shown] !== null) return {};
    const ways = fork.ways.map((way, i) => i === fork.shown ? null : way.map(take_message));
    return ways.every((way, i) => i === fork.shown || way.length) ? { fork: { shown: fork.shown, ways } } : {};
}

const take_conversation = c => {
    if (!Array.isArray(c?.messages)) throw new Error();
    const at = Number(c.changed);
    return create({ title: is_text(c.title) ? c.title.slice(0, MAX_NAME) : "", system: is_text(c.system) ? c.system : "",
        messages: c.messages.map(take_message), changed: Number.isFinite(at) ? Math.min(at, Date.now()) : Date.now(),
        pinned: c.pinned === true });
};

async function import_file(file) {
    let all, presets;
    try {
        const content = JSON.parse(await file.text());
        all = content.conversations.map(take_conversation);
        presets = (content.presets ?? []).map(take_preset);
    } catch {
        return notice(file.name + " is no file of exported conversations.");
    }
    try {
        for (const c of all) {
            await write(c);
            listed.set(c.id, about(c));
            tabs.postMessage(c.id);
        }
        await add_presets(presets);
    } catch { full(); }
    show_list();
    if (all.length) await choose(all[0].id);
}

function menu(open) {
    document.body.classList.toggle("menu", open);
    $("menu").setAttribute("aria-expanded", open);
    if (open) $("new").focus();
}

function listen_to_list() {
    for (const button of document.querySelectorAll("#manage [type=button]"))   /* so that Enter saves */
        button.addEventListener("click", () => $("manage").close(button.value));
    $("new").addEventListener("click", () => begin());
    $("new-temporary").addEventListener("click", () => begin({ temporary: true }));
    $("search").addEventListener("input", search);
    $("export").addEventListener("click", export_all);
    $("import").addEventListener("click", () => $("import-file").click());
    $("import-file").addEventListener("change", async () => {
        const [file] = $("import-file").files;
        if (file) await import_file(file);
        $("import-file").value = "";
    });
    $("menu").addEventListener("click", () => menu(!document.body.classList.contains("menu")));
    tabs.onmessage = async ({ data }) => {
        const c = await take_change(data);
        if (c) take_in(c);
        else if (data === current.id) current = create(), show();
        else show_list();
    };
}
