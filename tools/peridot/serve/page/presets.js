/* ---- presets: named sets of a system prompt, of how tokens are chosen and of thinking, which the settings take over
        and keep; a file of exported conversations has them, too ---- */

/* What the settings show, as a preset has it: { system, think, numbers }. */
const preset_of_form = () => ({
    system: $("system").value.trim(), think: $("think").value,
    numbers: Object.fromEntries(Object.keys(NUMBERS).filter(key => $("set-" + key).value !== "")
        .map(key => [key, Number($("set-" + key).value)])),
});

function preset_to_form({ system, think, numbers }) {
    $("system").value = system;
    $("think").value = think;
    for (const key of Object.keys(NUMBERS)) $("set-" + key).value = numbers[key] ?? "";
}

const same_preset = (a, b) => a.system === b.system && a.think === b.think
    && Object.keys(NUMBERS).every(key => a.numbers[key] === b.numbers[key]);

/* The names that there are, and which of them the settings are. */
async function show_presets() {
    const all = await find_presets();
    const shown = all.find(each => same_preset(each, preset_of_form()))?.name ?? "";
    $("preset").replaceChildren(element("option", { value: "" }, all.length ? "None of these" : "None yet"),
        ...all.map(({ name }) => element("option", { value: name }, name)));
    $("preset").value = shown;
    $("preset-delete").hidden = !shown;
}

async function save_preset() {
    if (!$("settings-form").reportValidity()) return;
    const name = prompt("Name of the preset:", $("preset").value)?.trim().slice(0, MAX_NAME);
    if (!name) return;
    const there = (await find_presets()).find(each => each.name === name);
    if (there && !same_preset(there, preset_of_form()) && !confirm("Replace “" + name + "”?")) return;
    await write_preset({ name, ...preset_of_form() });
    await show_presets();
}

async function delete_preset() {
    const name = $("preset").value;
    if (!confirm("Delete the preset “" + name + "”?")) return;
    await forget_preset(name);
    await show_presets();
    $("preset").focus();
}

async function choose_preset() {
    const chosen = (await find_presets()).find(each => each.name === $("preset").value);
    if (chosen) preset_to_form(chosen);
    await show_presets();
}

/* Of a file, which is anybody's. */
function take_preset(p) {
    if (![p?.name, p.system, p.think].every(is_text) || !p.name.trim()) throw new Error();
    const numbers = Object.fromEntries(Object.entries(NUMBERS).flatMap(([key, [, min, max, step]]) => {
        const value = p.numbers?.[key];
        const taken = Number.isFinite(value) && value >= min && value <= max && (step === "any" || value % step === 0);
        return taken ? [[key, value]] : [];
    }));
    return { name: p.name.trim().slice(0, MAX_NAME), system: p.system, numbers,
        think: ["on", "off"].includes(p.think) ? p.think : "" };
}

/* Beside those that there are: another one of the same name gets a number. */
async function add_presets(presets) {
    const all = await find_presets();
    for (const preset of presets) {
        const { name } = preset;
        const of_name = () => all.find(each => each.name === preset.name);
        for (let i = 2; of_name() && !same_preset(of_name(), preset); i++) preset.name = name + " (" + i + ")";
        if (of_name()) continue;
        await write_preset(preset);
        all.push(preset);
    }
}

function listen_to_presets() {
    const may_fail = call => () => call().catch(full);
    $("preset").addEventListener("change", may_fail(choose_preset));
    $("preset-save").addEventListener("click", may_fail(save_preset));
    $("preset-delete").addEventListener("click", may_fail(delete_preset));
    $("settings-form").addEventListener("input", event => {
        if (event.target.id !== "preset") may_fail(show_presets)();
    });
}
