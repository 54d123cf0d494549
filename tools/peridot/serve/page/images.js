/* ---- images: of the message that is being written, and in the conversation; where the model sees ---- */

const MAX_IMAGES = 32, MAX_SIDE = 2048, MAX_SIZE = 4e6;   /* pixels of a side, and bytes: larger ones are scaled down */
const KINDS = ["image/png", "image/jpeg", "image/webp", "image/gif"];   /* that the server reads */

let sees = false, images = [], n_adding = 0;   /* data URLs */

const file_url = file => new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
});

/* As it is, or as a smaller JPEG on white, turned as the camera was held. */
async function image_url(file) {
    const bitmap = await createImageBitmap(file, { imageOrientation: "from-image" });
    const scale = Math.min(1, MAX_SIDE / Math.max(bitmap.width, bitmap.height));
    if (scale === 1 && file.size <= MAX_SIZE && KINDS.includes(file.type)) return file_url(file);
    const canvas = document.createElement("canvas"), context = canvas.getContext("2d");
    canvas.width = Math.max(1, Math.round(bitmap.width * scale));
    canvas.height = Math.max(1, Math.round(bitmap.height * scale));
    context.fillStyle = "#fff";
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.imageSmoothingQuality = "high";
    context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
    bitmap.close();
    return canvas.toDataURL("image/jpeg", 0.9);
}

async function add_images(files) {
    if (!sees) return;
    for (const file of files) {
        n_adding++;
        show_images();
        try {
            const url = await image_url(file);
            if (images.length < MAX_IMAGES) images.push(url);
            else notice("A message can have at most " + MAX_IMAGES + " images.");
        } catch { notice((file.name || "The image") + " cannot be read as an image."); }
        n_adding--;
        show_images();
    }
}

const thumbnail = (url, i) => element("img", { src: url, alt: "Image " + (i + 1) });

/* As large as the window, until it is closed. */
function enlarge(url, i) {
    $("picture").replaceChildren(element("form", { method: "dialog" },
        element("button", { "aria-label": "Close" }, "✕")), thumbnail(url, i));
    $("picture").showModal();
}

/* Those of the message that is being written. */
function show_images() {
    $("sees").hidden = !sees;
    $("send").disabled = n_adding > 0;
    $("images").hidden = !images.length && !texts.length && !n_adding;
    $("images").replaceChildren(
        ...images.map((url, i) => element("li", {}, thumbnail(url, i), element("button", {
            type: "button", "aria-label": "Remove image " + (i + 1),
            onclick: () => { images.splice(i, 1); show_images(); $("text").focus(); },
        }, "✕"))),
        ...chips(),
        ...(n_adding ? [element("li", { class: "note" }, "Reading …")] : []));
}

function take_images() {
    const taken = images;
    images = [];
    show_images();
    return taken.length ? { images: taken } : {};
}

/* Those of a message of the conversation. What did not fit the browser's storage is gone. */
const images_of = m => [
    ...(m.images?.length ? [element("div", { class: "images" }, ...m.images.map((url, i) => element("button", {
        type: "button", "aria-label": "Enlarge image " + (i + 1), onclick: () => enlarge(url, i),
    }, thumbnail(url, i))))] : []),
    ...(m.n_lost ? [element("p", { class: "note" }, m.n_lost === 1
        ? "An image was here: the browser's storage had no room for it."
        : m.n_lost + " images were here: the browser's storage had no room for them.")] : []),
];

/* What a request has of a message's text and images. */
const content_of = ({ content, images }) => !images?.length ? content : [
    ...images.map(url => ({ type: "image_url", image_url: { url } })),
    ...(content ? [{ type: "text", text: content }] : []),
];

const without_images = c => ({
    ...c, messages: c.messages.map(({ images = [], ...m }) =>
        images.length ? { ...m, n_lost: (m.n_lost ?? 0) + images.length } : m),
});
const has_images = c => c.messages.some(m => m.images?.length);

/* ---- where they come from ---- */

const is_picture = file => file.type.startsWith("image/");

function listen_for_images() {
    $("attach").addEventListener("click", () => $("files").click());
    $("files").addEventListener("change", async () => {
        const files = [...$("files").files];
        $("files").value = "";
        await add_files(files);
        $("text").focus();
    });
    document.addEventListener("paste", event => {
        const files = [...event.clipboardData.files], text = event.clipboardData.getData("text/plain");
        if (!files.length || text || document.querySelector("dialog[open]")) return;   /* as of a table */
        event.preventDefault();
        add_files(files);
    });
    for (const type of ["dragover", "dragleave", "drop"]) {
        document.addEventListener(type, event => {
            const over = event.dataTransfer?.types.includes("Files");
            document.body.classList.toggle("drop", over && type === "dragover");
            if (!over) return;
            event.preventDefault();
            if (type === "drop") add_files([...event.dataTransfer.files]);
        });
    }
}
