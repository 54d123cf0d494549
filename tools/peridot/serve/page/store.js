/* ---- storage: conversations are in IndexedDB, which has room for images; what the list shows of each is in memory.
        Tabs tell each other what they changed. Settings are in localStorage. ---- */

const load = (key, otherwise) => {
    try { return JSON.parse(localStorage.getItem(key)) ?? otherwise; } catch { return otherwise; }
};
const save = (key, value) => {
    try { localStorage.setItem(key, JSON.stringify(value)); } catch { full(); }
};
const full = () => notice("The browser's storage is full: delete old conversations to keep this one.");

const random_id = () => Array.from(crypto.getRandomValues(new Uint8Array(16)),
    byte => byte.toString(16).padStart(2, "0")).join("");
const create = (more = {}) => ({
    id: random_id(), title: "", system: "", messages: [], changed: Date.now(), ...more,
});

const listed = new Map();   /* by id: { id, title, changed, pinned } */
const about = ({ id, title, changed, pinned }) => ({ id, title, changed, pinned });
const conversations = () => [...listed.values()].sort((a, b) =>
    Boolean(b.pinned) - Boolean(a.pinned) || b.changed - a.changed);

let storage_notice = "";   /* what holds as long as it is not mended */
const say_of_storage = text => {
    storage_notice = text;
    notice("");
};

const finished = request => new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
});
const database = new Promise((resolve, reject) => {
    const request = indexedDB.open("peridot", 2);
    request.onupgradeneeded = ({ oldVersion }) => {
        if (oldVersion < 1) {
            request.result.createObjectStore("conversations", { keyPath: "id" });
            request.result.createObjectStore("list", { keyPath: "id" });
        }
        request.result.createObjectStore("presets", { keyPath: "name" });
    };
    request.onblocked = () => say_of_storage("Another tab shows an earlier version of this page: close it, or load it anew.");
    request.onsuccess = () => {
        if (storage_notice) say_of_storage("");
        request.result.onversionchange = () => {
            request.result.close();
            say_of_storage("Another tab has a later version of this page: load this one anew; nothing is kept here.");
        };
        resolve(request.result);
    };
    request.onerror = () => reject(request.error);
});
database.catch(() => {});

/* Calls that with the tables; resolves when what it wrote is kept. */
async function in_tables(mode, call, names = ["conversations", "list"]) {
    const transaction = (await database).transaction(names, mode);
    const kept = new Promise((resolve, reject) => {
        transaction.oncomplete = resolve;
        transaction.onabort = () => reject(transaction.error);
    });
    const result = call(...names.map(name => transaction.objectStore(name)));
    await kept;
    return result?.result;
}

const find_presets = () => in_tables("readonly", presets => presets.getAll(), ["presets"]);
const write_preset = preset => in_tables("readwrite", presets => presets.put(preset), ["presets"]);
const forget_preset = name => in_tables("readwrite", presets => presets.delete(name), ["presets"]);

const tabs = new BroadcastChannel("peridot");
const find = id => in_tables("readonly", all => all.get(id));

const write = c => in_tables("readwrite", (all, list) => {
    list.put(about(c));
    return all.put(c);
});

/* Whether it could be kept. What is temporary is not. */
async function keep(c) {
    if (c.temporary || leaving) return true;
    c.changed = Date.now();
    listed.set(c.id, about(c));
    try { await write(c); } catch (error) {
        if (!has_images(c)) { full(); return false; }
        try { await write(without_images(c)); } catch { full(); return false; }
        notice("The browser's storage has no room for this conversation's images: they are gone once it is left.");
    }
    tabs.postMessage(c.id);
    return true;
}
const keep_if_there = c => listed.has(c.id) ? keep(c) : false;   /* it may be deleted */

async function forget(id) {
    listed.delete(id);
    await in_tables("readwrite", (all, list) => {
        list.delete(id);
        return all.delete(id);
    });
    tabs.postMessage(id);
}

/* Where earlier versions had conversations. */
async function take_over_old() {
    const prefix = "peridot.conversation.";
    for (const key of Object.keys(localStorage).filter(key => key.startsWith(prefix))) {
        const c = load(key, null);
        if (c && Array.isArray(c.messages)) await write({ title: "", system: "", changed: 0, ...c });
        localStorage.removeItem(key);
    }
}

async function read_list() {
    await take_over_old();
    for (const each of await in_tables("readonly", (_, list) => list.getAll())) listed.set(each.id, each);
}

/* Another tab has changed or deleted one. */
async function take_change(id) {
    const c = await find(id);
    if (c) listed.set(id, about(c));
    else listed.delete(id);
    return c;
}

/* The ids of those with that text in a title or a message. */
async function search_conversations(text) {
    const found = new Set(), wanted = text.toLowerCase();
    const has = c => [c.title, ...c.messages.map(m => m.content)].some(s => s?.toLowerCase().includes(wanted));
    await in_tables("readonly", all => {
        all.openCursor().onsuccess = event => {
            const cursor = event.target.result;
            if (!cursor) return;
            if (has(cursor.value)) found.add(cursor.value.id);
            cursor.continue();
        };
    });
    return found;
}

/* ---- branches: where a message was tried again or edited there are several ways on. The message where they part has
        `fork`: those that are not shown, with a null for the one that is ---- */

/* What comes from message i on becomes another way; the caller adds the new one. */
function part_ways(c, i) {
    const tail = c.messages.splice(i), fork = tail[0]?.fork ?? { shown: 0, ways: [null] };
    if (!tail.length) return null;
    delete tail[0].fork;
    fork.ways[fork.shown] = tail;
    fork.shown = fork.ways.push(null) - 1;
    return fork;
}

/* The next or the last way at message i. */
function take_way(c, i, step) {
    const { fork } = c.messages[i], tail = c.messages.splice(i);
    delete tail[0].fork;
    fork.ways[fork.shown] = tail;
    fork.shown = (fork.shown + step + fork.ways.length) % fork.ways.length;
    const way = fork.ways[fork.shown];
    fork.ways[fork.shown] = null;
    way[0].fork = fork;
    c.messages.push(...way);
}
