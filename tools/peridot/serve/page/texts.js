/* ---- text files: of the message that is being written, and in the conversation. The model gets their text before the
        message's own ---- */

const MAX_TEXT = 1 << 20;   /* bytes of a file; the context is usually full before */

let texts = [];   /* { name, text } */

async function add_text(file) {
    const cannot = why => notice(file.name + " cannot be added: " + why);
    if (/\.pdf$/i.test(file.name)) return cannot("text of PDF files cannot be read here.");
    if (file.size > MAX_TEXT) return cannot("it has more than 1 MiB.");
    try {
        const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
        if (text.includes("\0")) return cannot("it is no text.");
        texts.push({ name: file.name, text });
    } catch { cannot("it is no text in UTF-8."); }
}

/* What a person has chosen, dropped or pasted. */
async function add_files(files) {
    notice("");
    await add_images(files.filter(is_picture));
    for (const file of files.filter(each => !is_picture(each))) await add_text(file);
    if (files.some(is_picture) && !sees) notice("This model sees no images.");
    show_images();
}

const chips = () => texts.map(({ name }, i) => element("li", { class: "chip" }, name, element("button", {
    type: "button", "aria-label": "Remove " + name,
    onclick: () => { texts.splice(i, 1); show_images(); $("text").focus(); },
}, "✕")));

function take_texts() {
    const taken = texts;
    texts = [];
    return taken.length ? { texts: taken } : {};
}

const texts_of = m => (m.texts ?? []).map(({ name, text }) => element("details", { class: "file" },
    element("summary", {}, name), element("pre", { tabindex: "0", "aria-label": name }, text)));

/* As models know it: a fence longer than any in the text. */
function with_texts({ content, texts = [] }) {
    const fenced = texts.map(({ name, text }) => {
        const fence = "`".repeat(Math.max(3, ...(text.match(/`+/g) ?? []).map(each => each.length + 1)));
        return name + ":\n\n" + fence + "\n" + text.replace(/\n$/, "") + "\n" + fence + "\n";
    });
    return [...fenced, content].filter(Boolean).join("\n");
}
