/* A tensor's story. */

const some = (names) => names.slice(0, 4).join(", ") + (names.length > 4 ? `, ${names.length - 4} more` : "");

/* Long names may break behind their dots. */
const breakable = (text) => text.split(/(?<=\.)/).flatMap((part, k) => (k ? [element("wbr"), part] : [part]));

function storyRows(t) {
    const steps = t.end - t.first, between = (t.uses ?? []).filter((step) => step > t.first && step < t.last);
    const rows = [["Bytes", `${digits(t.bytes)}  (${bytes(t.bytes)})`], ["Address", `${digits(t.offset)} to ${digits(t.top)}`],
        ["Live", steps === 1 ? `step ${digits(t.first)}` : `${digits(steps)} steps, ${digits(t.first)} to ${digits(t.last)}`],
        ["First use", stepText(t.first)]];
    if (between.length) rows.push(["Then used by", some(between.map(stepText))]);
    if (steps > 1) rows.push(["Last use", stepText(t.last)]);
    if (t.owner) rows.push([t.bytes < t.owner.bytes ? "Part of" : "View of", t.owner.name]);
    const seen = (t.views ?? []).filter((view) => view.bytes === t.bytes), held = (t.views ?? []).filter((view) => view.bytes < t.bytes);
    if (seen.length) rows.push(["Seen as", some(seen.map((view) => view.name))]);
    if (held.length) rows.push(["Holds", some(held.map((view) => view.name))]);
    if (t.from) rows.push([t.inPlace ? "In place of" : "Takes over", t.from.name]);
    if (t.reusedBy.length) rows.push(["Taken over by", some(t.reusedBy.map((other) => other.name))]);
    if (!t.owner && t.region === shown.region && t.first <= shown.peakStep && shown.peakStep < t.end)
        rows.push(["At the peak", `${(100 * t.bytes / shown.peakLive).toFixed(0)} % of what is live`]);
    if (plan.regions.length > 1) rows.push(["Region", plan.regions[t.region]]);
    return rows;
}

function tellStory() {
    const t = state.hover ?? state.held, card = $("card");
    card.hidden = !t;
    if (!t) return;
    const table = element("table");
    for (const [key, value] of storyRows(t))
        table.append(element("tr", {}, element("th", {scope: "row"}, key), element("td", {}, ...breakable(value))));
    const about = [t.type, t.kind === "tensor" ? "" : t.kind].filter(Boolean).join("  ");
    card.replaceChildren(element("b", {}, ...breakable(t.name)), ...(about ? [element("code", {}, about)] : []), table);
    placeCard();
}

function placeCard() {
    const t = state.hover ?? state.held, card = $("card");
    if (!t) return;
    const b = blockBox(t.owner ?? t);
    const at = state.hover && state.pointer ? state.pointer : {
        x: Math.min(Math.max(b.x + b.w / 2, box.left), width - box.right),
        y: Math.min(Math.max(b.y + b.h / 2, box.top), height - box.strip)};
    const left = at.x + 20 + card.offsetWidth > width ? at.x - card.offsetWidth - 20 : at.x + 20;
    card.style.left = Math.max(8, left) + "px";
    card.style.top = Math.max(8, Math.min(at.y + 18, height - card.offsetHeight - 8)) + "px";
}

/* The list.  Only the rows in sight exist. */

const list = $("list"), ROW = 36;
let listed = [];

function renewList() {
    const step = state.mode === "peak" ? shown.peakStep : state.cursor ?? shown.peakStep;
    const all = state.mode === "all";
    listed = (all ? [...shown.blocks] : liveAt(step)).filter(matches);
    listed.sort((a, b) => b.bytes - a.bytes || a.index - b.index);
    const sum = all ? listed.reduce((s, t) => s + t.bytes, 0) : liveBytes(step);
    const count = `${digits(listed.length)} ${listed.length === 1 ? "tensor" : "tensors"}`;
    const what = all ? `${count} of ${bytes(sum)}, were none to reuse memory` :
        `${state.words.length ? count + " shown; " : count + ", "}${bytes(sum)} live (${digits(sum)} B)`;
    $("heading").replaceChildren(element("b", {}, all ? "By size" : (state.mode === "peak" ? "Fullest: " : "At ") + stepText(step)), what);
    const hint = state.mode === "peak" && plan.regions.length < 2 ? plan.blame.hint : "";
    $("hint").replaceChildren(...(hint ? [element("b", {}, "What would lower the peak"), hint] : []));
    for (const tab of document.querySelectorAll(".tabs button")) tab.setAttribute("aria-pressed", tab.dataset.mode === state.mode);
    paintList();
}

function paintList() {
    const first = Math.max(0, Math.floor(list.scrollTop / ROW) - 3), most = Math.max(listed[0]?.bytes ?? 1, 1);
    const rows = listed.slice(first, first + Math.ceil(list.clientHeight / ROW) + 6).map((t, k) => {
        const row = element("button", {className: "row" + (t === (state.hover ?? state.held) ? " on" : ""), title: t.name},
            element("i"), element("span", {}, t.name), element("small", {}, bytes(t.bytes)), element("u"));
        row.dataset.tensor = t.index;
        row.style.top = (first + k) * ROW + "px";
        row.children[0].style.background = row.children[3].style.background = `var(${t.colour})`;
        row.children[3].style.width = `calc(${(t.bytes / most).toFixed(4)} * (100% - 60px))`;
        return row;
    });
    const rest = element("div");
    rest.style.height = listed.length * ROW + "px";
    const focused = list.contains(document.activeElement) ? document.activeElement.dataset.tensor : undefined;
    list.replaceChildren(rest, ...rows);
    if (focused !== undefined) rows.find((row) => row.dataset.tensor === focused)?.focus({preventScroll: true});
}

/* To the next or previous row, which comes into being when it comes into sight. */
function stepThroughList(by) {
    const now = listed.indexOf(tensors[document.activeElement?.dataset?.tensor]);
    const next = Math.min(Math.max(now + by, 0), listed.length - 1);
    if (next < 0) return;
    list.scrollTop = Math.min(Math.max(list.scrollTop, (next + 1) * ROW - list.clientHeight), next * ROW);
    paintList();
    list.querySelector(`[data-tensor="${listed[next].index}"]`)?.focus({preventScroll: true});
}

const rowTensor = (event) => tensors[event.target.closest?.(".row")?.dataset.tensor];

/* Blocks too small to see are brought nearer. */
function show(t) {
    const b = blockBox(t), seen = b.x >= box.left && b.x < width - box.right && b.y >= box.top && b.y < box.top + plotHeight();
    if (seen && b.w >= 22 && b.h >= 10) return;
    const span = Math.max((t.end - t.first) * 5, 8), range = Math.max(t.bytes * 6, shown.height / 40);
    const t0 = (t.first + t.end - span) / 2, a0 = Math.max(0, t.offset + t.bytes / 2 - range / 2);
    glide({t0, t1: t0 + span, a0, a1: a0 + range});
}

/* The parts of the model by their colours; each shows its own tensors alone. */

const MOST_CHIPS = 60;

function fillLegend() {
    const chip = (name, colour) => {
        const button = element("button", {className: "chip", type: "button"}, element("i"), name);
        button.children[0].style.background = `var(${colour})`;
        button.setAttribute("aria-pressed", "false");
        $("legend").append(button);
        return button;
    };
    for (const [k, scope] of scopes.slice(0, MOST_CHIPS).entries()) {
        const button = chip(scope.name, "--c" + scope.hue);
        button.dataset.scope = k;
        button.title = `${digits(scope.count)} ${scope.count === 1 ? "tensor" : "tensors"}; click to show these alone`;
    }
    const others = [[PLAIN, "--plain", "other"], [SCRATCH, "--scratch", "scratch"]];
    for (const [scope, colour, name] of scopes.length ? others : [])
        if (shown.blocks.some((t) => t.scope === scope)) chip(name, colour).dataset.scope = scope;
    if (scopes.length > MOST_CHIPS) $("legend").append(element("span", {}, `and ${digits(scopes.length - MOST_CHIPS)} more`));
}

function showScope(scope) {
    state.scope = state.scope === scope ? null : scope;
    for (const chip of $("legend").querySelectorAll("button"))
        chip.setAttribute("aria-pressed", Number(chip.dataset.scope) === state.scope);
    applyFilter();
}
