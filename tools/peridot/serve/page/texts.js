/* ---- text files, and the text of PDF files: of the message that is being written, and in the conversation. The model
        gets their text before the message's own ---- */

const MAX_TEXT = 1 << 20;   /* bytes of a file; the context is usually full before */

let texts = [];   /* { name, text } */

async function add_text(file) {
    const cannot = why => notice(file.name + " cannot be added: " + why);
    if (file.size <= MAX_PDF && (await file.slice(0, 1024).text()).includes("%PDF-")) return add_pdf(file, cannot);
    if (file.size > MAX_TEXT) return cannot("it has more than 1 MiB.");
    try {
        const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
        if (text.includes("\0")) return cannot("it is no text.");
        texts.push({ name: file.name, text });
    } catch { cannot("it is no text in UTF-8."); }
}

async function add_pdf(file, cannot) {
    try {
        const { text, n_pages, n_empty } = await text_of_pdf(new Uint8Array(await file.arrayBuffer()));
        if (!text) return cannot("it has no text that can be read: its pages may be pictures.");
        if (text.length > MAX_TEXT) return cannot("its text is longer than 1 MiB.");
        texts.push({ name: file.name, text });
        if (n_empty) notice(file.name + ": no text can be read on " + n_empty + " of " + counted(n_pages, "page")
            + ", which may be pictures.");
        else if (text.includes("\ufffd")) notice(file.name + ": characters that cannot be read are shown as \ufffd.");
    } catch (error) {
        cannot(error instanceof TypeError || error instanceof RangeError ? "it is damaged." : error.message);
    }
}

/* What a person has chosen, dropped or pasted. */
async function add_files(files) {
    notice("");
    await add_images(files.filter(is_picture));
    n_adding++;
    show_images();
    for (const file of files.filter(each => !is_picture(each))) await add_text(file);
    n_adding--;
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
