/* ---- tools: what the server was started with; the person is asked before each call ---- */

const NO_TOOLS = { tools: [], about: {} };   /* what the server says of them: definitions, and by name whose they are */
const REFUSED = "error: the user does not allow this call";
const LEFT = "error: the page was left during this call";
const STOPPED = "error: the user stopped before this call";

let has_tools = false, tools = NO_TOOLS;

const ask_server = (path, body, signal, more = {}) =>
    fetch(path, { method: "POST", headers: { ...headers(), ...more }, body: JSON.stringify(body), signal });

/* There may be others than before. */
async function find_tools(signal) {
    if (!has_tools) return;
    const response = await ask_server("tools/list", {}, signal);
    if (response.ok) tools = await response.json();
    else if (response.status === 404) tools = NO_TOOLS;
    else throw new Error(await failure(response));
}

const definition = name => tools.tools.find(tool => tool.function.name === name);
const request_tools = () => settings.tools !== "off" && tools.tools.length ? { tools: tools.tools } : {};

/* Calls stand in the reply that has them, with their results; the server gets both as messages of their own. */
const to_messages = ({ role, content, images, texts, tool_calls = [] }) => [
    { role, content: content_of({ content: with_texts({ content, texts }), images }), ...(tool_calls.length
        ? { tool_calls: tool_calls.map(call => ({ id: call.id, type: "function", function: call.function })) } : {}) },
    ...tool_calls.map(call => ({
        role: "tool", tool_call_id: call.id, name: call.function.name, content: call.result ?? STOPPED,
    })),
];

/* More of the calls of a reply. */
function take_calls(calls, deltas) {
    for (const delta of deltas) {
        const call = calls[delta.index] ??= { id: delta.id, function: { name: "", arguments: "" } };
        call.function.name += delta.function?.name ?? "";
        call.function.arguments += delta.function?.arguments ?? "";
    }
}

/* "once", "always" or "no". What is always allowed is so for the definition that the person has seen. */
async function decide(run, call, signal) {
    const name = call.function.name, seen = JSON.stringify(definition(name)), c = run.conversation;
    if (tools.about[name].allowed || c.allowed?.[name] === seen) return "once";
    const answer = await new Promise((resolve, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason), { once: true });
        run.question = { call, resolve };
        redraw(c);
    }).finally(() => { run.question = null; });
    if (answer === "always") c.allowed = { ...c.allowed, [name]: seen };
    return answer;
}

async function run_call(run, call, signal) {
    const c = run.conversation;
    signal.throwIfAborted();
    if (!definition(call.function.name)) return "error: there is no tool " + call.function.name;
    call.source = tools.about[call.function.name].source;
    if (await decide(run, call, signal) === "no") return REFUSED;
    run.call = call;
    call.begun = true;   /* which is known when the page is left now, so that it is not made twice */
    await keep_if_there(c);
    redraw(c);
    const response = await ask_server("tools/call", call.function, signal);
    if (!response.ok) throw new Error(await failure(response));
    return (await response.json()).result;
}

async function run_calls(run, reply, signal) {
    const c = run.conversation;
    for (const call of reply.tool_calls.filter(each => each.result === undefined)) {
        if (call.begun) {
            call.result = LEFT;
            continue;
        }
        try { call.result = await run_call(run, call, signal); }
        finally { run.call = null; }
        keep_if_there(c);
        redraw(c);
    }
}

/* ---- how calls look ---- */

/* What would hide or reorder characters is written out: the person decides by what is to be seen. */
const shown = text => text.replace(/[\p{Cc}\p{Cf}]/gu,
    c => c === "\n" ? c : "\\u{" + c.codePointAt(0).toString(16) + "}");

const part = (title, text) => [
    element("p", { class: "note" }, title), element("pre", { tabindex: "0", "aria-label": title }, shown(text)),
];

function question_of(call) {
    const name = call.function.name;
    const button = (text, answer, kind = "") => element("button",
        { type: "button", class: kind, onclick: () => run_of(current)?.question?.resolve(answer) }, text);
    return element("div", { class: "question", role: "group", "aria-label": "May the model call " + name + "?" },
        button("Allow once", "once", "main"), button("Always in this conversation", "always"), button("Deny", "no"));
}

function state_of(call, asked) {
    if (asked) return "asks to be called";
    if (run_of(current)?.call === call) return "runs …";
    if (call.result === undefined || call.result === STOPPED) return "stopped";
    if (call.result === REFUSED) return "denied";
    return call.result.startsWith("error: ") ? "failed" : "called";
}

function call_of(call) {
    const asked = run_of(current)?.question?.call === call;
    return element("div", { class: "call" },
        element("details", asked ? { open: "" } : {},
            element("summary", {}, element("code", {}, call.function.name),
                element("span", { class: "note" }, [call.source, state_of(call, asked)].filter(Boolean).join(" · "))),
            ...part("Arguments", call.function.arguments),
            ...(call.result === undefined ? [] : part("Result", call.result))),
        ...(asked ? [question_of(call)] : []));
}

/* In the settings. */
function show_tools() {
    $("tools-box").hidden = !tools.tools.length;
    $("tools-list").replaceChildren(...tools.tools.map(({ function: f }) => element("li", {},
        element("code", {}, f.name), element("span", { class: "note" }, shown(tools.about[f.name].source)
            + (tools.about[f.name].allowed ? " · called without a question" : "")),
        element("p", {}, shown(f.description ?? "")))));
}
