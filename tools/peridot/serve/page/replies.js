/* ---- replies: asking for one, reading it as it comes, and taking up one that was left. The server goes on writing
        what has an id of ours; one tab has the lock of a conversation, which keeps the reply and calls its tools, and
        others watch the same stream ---- */

const runs = new Map();   /* by a conversation's id: { conversation, abort, question, call, watches, n, first, last } */
const run_of = c => runs.get(c.id);

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

/* The data of server-sent events, as it comes. What is no event is an error's object. */
async function* events(response) {
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "", other = "";
    for (;;) {
        const { value, done } = await reader.read();
        const lines = (rest + (value ?? "")).split(/\r?\n/);
        rest = done ? "" : lines.pop();
        for (const line of lines)
            if (line.startsWith("data:")) yield line.slice(5).trim();
            else if (!line.startsWith(":")) other += line;
        if (done) break;
    }
    if (other.startsWith("{")) yield other;
}

function request_of(c) {
    const numbers = Object.fromEntries(
        Object.keys(NUMBERS).filter(key => Number.isFinite(settings[key])).map(key => [key, settings[key]]));
    const messages = c.messages.slice(0, -1).flatMap(to_messages);
    const before = c.messages.at(-1).before;
    if (before) messages.push({ role: "assistant", content: before });
    if (c.system) messages.unshift({ role: "system", content: c.system });
    const think = settings.think ? { enable_thinking: settings.think === "on" } : {};
    const named = adapter() || (models.length > 1 && model().id), chosen = named ? { model: named } : {};
    return { messages, full: "drop", stream: true, stream_options: { include_usage: true },
        return_progress: true, ...request_tools(), ...(before ? { continue_final_message: true } : {}),
        ...think, ...chosen, ...numbers };
}

const stream_headers = reply => reply.stream ? { "X-Stream-Id": reply.stream } : {};
const take_up_stream = (reply, signal) => fetch("v1/streams/" + reply.stream, { headers: headers(), signal });

/* What a reply has from its stream alone: not what it had before it was continued. */
function reset_reply(reply) {
    reply.content = reply.before ?? "";
    delete reply.thought;
}

/* What a run is at. */
function progress_of({ n, first, last, reading, loading }) {
    if (n) return [counted(n, "token"), ...speed(n, last - first)].join(" · ");
    if (reading)
        return "Reading " + reading.processed.toLocaleString() + " of " + reading.total.toLocaleString() + " tokens";
    return loading ? "Loading " + loading + " …" : "";
}

const counted = (n, what) => n + " " + what + (n === 1 ? "" : "s");
const speed = (n, ms) => n > 1 && ms > 0 ? [((n - 1) / ms * 1000).toFixed(1) + " tokens/s"] : [];

function note_of(run, usage, finish, begun) {
    const n = usage?.completion_tokens, n_thought = usage?.completion_tokens_details?.reasoning_tokens, parts = [];
    if (run.stopped) parts.push("stopped");
    if (n_thought) parts.push(n_thought + (n_thought === 1 ? " token of thought" : " tokens of thought"));
    if (n) parts.push(counted(n, "token"));
    if (!run.taken_up) parts.push(...speed(n, run.last - run.first));
    if (run.first && !run.taken_up) parts.push("first token after " + ((run.first - begun) / 1000).toFixed(2) + " s");
    if (finish === "length")
        parts.push(Number.isFinite(settings.max_tokens)
            ? "reached the longest length" : "ended to leave room for the next turn");
    return parts.join(" · ");
}

/* An event of the stream. Whether there is more to see. */
function take_event(run, reply, event, state) {
    const c = run.conversation, choice = event.choices?.[0];
    if (event.error) throw new Error(event.error.message);
    state.usage = event.usage ?? state.usage;
    if (event.dropped_messages !== undefined && event.dropped_messages !== dropped(c)) {
        reply.dropped = event.dropped_messages;
        redraw(c);
    }
    if (event.prompt_progress) {
        run.reading = event.prompt_progress;
        show_progress(c);
    }
    state.finish = choice?.finish_reason ?? state.finish;
    take_calls(state.calls, choice?.delta?.tool_calls ?? []);
    if (!choice?.delta?.content && !choice?.delta?.reasoning_content) return false;
    run.n++;
    run.last = performance.now();
    run.first ||= run.last;
    reply.content += choice.delta.content ?? "";
    if (choice.delta.reasoning_content) reply.thought = (reply.thought ?? "") + choice.delta.reasoning_content;
    return true;
}

async function read_reply(run, reply, response) {
    const c = run.conversation, state = { usage: null, finish: "", calls: [] }, begun = run.begun;
    let drawn = false, drawing = 0;
    if (!response.ok) throw new Error(response.status === 404 && run.taken_up
        ? "The rest of this reply is lost: the server no longer has it." : await failure(response));
    if (run.taken_up) reset_reply(reply);
    for await (const data of events(response)) {
        if (data === "[DONE]") break;
        if (!take_event(run, reply, JSON.parse(data), state) || drawn || c !== current) continue;
        drawn = true;   /* a long reply is drawn for a part of the time only */
        setTimeout(() => requestAnimationFrame(() => {
            const begins = performance.now();
            drawn = false;
            draw(c, reply);
            drawing = performance.now() - begins;
        }), 3 * drawing);
    }
    reply.note = note_of(run, state.usage, state.finish, begun);
    reply.cut = Boolean(run.stopped || state.finish === "length");
    if (state.usage) reply.n_used = state.usage.total_tokens;
    if (!state.finish) throw new Error("The reply has no end: the server stopped it.");
    if (state.finish !== "tool_calls") return;   /* else they were cut */
    const before = reply.tool_calls ?? [];
    reply.tool_calls = state.calls.map((call, i) => ({ ...before[i], ...call }));
}

/* A reply, whose stream is asked for, or was before; then the model's calls, and what it makes of them. */
async function drive(run, reply) {
    const c = run.conversation, { signal } = run.abort;
    for (;;) {
        Object.assign(run, { reply, n: 0, first: 0, last: 0, reading: null, begun: performance.now() });
        redraw(c);
        if (!run.taken_up) await keep_if_there(c);
        await find_tools(signal);
        signal.throwIfAborted();
        run.reads = true;
        run.loading = !run.taken_up && model()?.loaded === false && model().id;
        show_progress(c);
        const response = run.taken_up ? await take_up_stream(reply, signal)
            : await ask_server("v1/chat/completions", request_of(c), signal, stream_headers(reply));
        await read_reply(run, reply, response);
        run.reads = false;
        if (reply.tool_calls) await run_calls(run, reply, signal);
        delete reply.stream;
        delete reply.before;
        if (!reply.tool_calls || run.stopped) return;
        run.taken_up = false;
        reply = new_reply(c);
    }
}

const stream_of = c => c.temporary ? {} : { stream: random_id() };

function new_reply(c, more = {}) {
    const reply = { role: "assistant", content: "", ...stream_of(c), ...more };
    c.messages.push(reply);
    return reply;
}

/* Of this tab, or of another one whose reply this one only shows. */
const with_lock = (c, options, call) =>
    navigator.locks ? navigator.locks.request("peridot." + c.id, options, lock => lock ? call() : false) : call();

async function run_to_end(run, reply) {
    const c = run.conversation;
    try { await drive(run, reply); } catch (error) {
        if (error.name === "AbortError") run.reply.note = "stopped";
        else run.reply.error = error instanceof TypeError ? "The server does not respond." : error.message;
        run.reply.cut = true;
        delete run.reply.stream;
        delete run.reply.before;
    }
    await keep_if_there(c);
    return true;
}

function begin_run(c) {
    const run = { conversation: c, abort: new AbortController(), question: null, call: null, n: 0 };
    runs.set(c.id, run);
    return run;
}

function end_run(run) {
    const c = run.conversation, answered = run.reply;
    if (runs.get(c.id) === run) runs.delete(c.id);
    redraw(c);
    if (model()?.loaded === false) find_model();   /* it is now */
    if (c === current && answered) say(answered.error ?? answered.content);
}

async function answer(c, reply = new_reply(c)) {
    const run = begin_run(c);
    notice("");
    to_end();
    run.reply = reply;
    redraw(c);
    await with_lock(c, {}, () => run_to_end(run, reply));
    end_run(run);
}

/* A reply that was left, or that another tab has. */
const pending = c => { const m = c.messages.at(-1); return m?.stream && !m.error ? m : null; };

async function take_up(c) {
    const reply = pending(c);
    if (!reply || run_of(c)) return;
    const run = Object.assign(begin_run(c), { reply, taken_up: true });
    const mine = await with_lock(c, { ifAvailable: true }, () => run_to_end(run, reply));
    if (!mine) await watch(run, reply);
    end_run(run);
    const now = mine ? null : await find(c.id);
    if (now) take_in(now);   /* and where the tab that had it is gone, this takes it up */
}

/* The stream as another tab has it; until that has ended, or is gone. */
async function watch(run, reply) {
    const { signal } = run.abort;
    run.watches = true;
    redraw(run.conversation);
    try {
        let response = await take_up_stream(reply, signal);
        for (let i = 0; i < 10 && response.status === 404; i++) {   /* it may not have come to the server yet */
            await new Promise(resolve => setTimeout(resolve, 100));
            response = await take_up_stream(reply, signal);
        }
        await read_reply(run, reply, response);
    } catch { /* the other tab says what */ }
    await with_lock(run.conversation, {}, () => true);
}

/* What was written stays; the server counts it. */
async function stop(run) {
    const id = run.reply?.stream;
    run.stopped = true;
    if (!id || (!run.reads && !run.watches)) return run.abort.abort();
    setTimeout(() => { if (runs.get(run.conversation.id) === run && !run.watches) run.abort.abort(); }, 3000);
    const stopped = await fetch("v1/streams/" + id, { method: "DELETE", headers: headers() }).catch(() => null);
    if (!stopped?.ok) run.abort.abort();
}
