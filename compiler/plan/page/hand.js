/* The reader's hand. */

function choose(hover, pointer) {
    const changed = hover !== state.hover;
    state.hover = hover;
    state.pointer = pointer;
    if (changed) tellStory();
    redraw();
}

function setCursor(step, held) {
    if (step !== null) step = Math.min(Math.max(Math.floor(step), firstStep), Math.max(lastStep - 1, firstStep));
    const changed = step !== state.cursor || held !== state.cursorHeld;
    state.cursor = step;
    state.cursorHeld = held;
    if (changed && state.mode === "cursor") renewList();
    if (changed) redraw();
}

function setMode(mode) {
    state.mode = mode;
    list.scrollTop = 0;
    renewList();
}

function inPlot(x, y) {
    return x >= box.left && x <= width - box.right && y >= box.top && y <= height;
}

/* The topmost block, which is the last drawn. */
function tensorAt(x, y) {
    const step = stepAt(x), address = addressAt(y);
    if (!inPlot(x, y) || y > box.top + plotHeight()) return null;
    return shown.blocks.findLast((t) => t.first <= step && step < t.end && t.offset <= address && address < t.top && matches(t)) ?? null;
}

let grip = null;
const fingers = new Map();

canvas.addEventListener("pointerdown", (event) => {
    grip = {x: event.offsetX, y: event.offsetY, moved: fingers.size > 0};
    fingers.set(event.pointerId, {x: event.offsetX, y: event.offsetY});
    canvas.setPointerCapture(event.pointerId);
});

/* Two fingers: their distance zooms, their middle moves. */
function pinch(id, x, y) {
    const [a, b] = fingers.values(), before = {x: (a.x + b.x) / 2, y: (a.y + b.y) / 2, far: Math.hypot(a.x - b.x, a.y - b.y)};
    Object.assign(fingers.get(id), {x, y});
    const after = {x: (a.x + b.x) / 2, y: (a.y + b.y) / 2, far: Math.hypot(a.x - b.x, a.y - b.y)};
    move(after.x - before.x, after.y - before.y);
    if (after.far > 8) zoom(before.far / after.far, after.x, after.y, true, true);
}

canvas.addEventListener("pointermove", (event) => {
    const {offsetX: x, offsetY: y} = event;
    if (fingers.size === 2 && fingers.has(event.pointerId)) return pinch(event.pointerId, x, y);
    if (grip && (grip.moved || Math.hypot(x - grip.x, y - grip.y) > 4)) {
        move(x - grip.x, y - grip.y);
        grip = {x, y, moved: true};
        canvas.classList.add("dragging");
        return choose(null, null);
    }
    if (!state.cursorHeld) setCursor(inPlot(x, y) ? stepAt(x) : null, false);
    choose(tensorAt(x, y), {x, y});
});

canvas.addEventListener("pointerup", (event) => {
    const click = grip && !grip.moved && inPlot(event.offsetX, event.offsetY);
    fingers.delete(event.pointerId);
    grip = null;
    canvas.classList.remove("dragging");
    if (!click) return;
    state.held = tensorAt(event.offsetX, event.offsetY);
    setCursor(stepAt(event.offsetX), true);
    setMode("cursor");
    tellStory();
});

canvas.addEventListener("pointercancel", (event) => {
    fingers.delete(event.pointerId);
    grip = null;
    canvas.classList.remove("dragging");
});

canvas.addEventListener("pointerleave", () => {
    if (!state.cursorHeld) setCursor(null, false);
    choose(null, null);
});

canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 16 : 1, turn = (event.deltaY || event.deltaX) * lines;
    zoom(Math.exp(Math.min(Math.max(turn, -240), 240) * 0.0022), event.offsetX, event.offsetY, !event.altKey, !event.shiftKey);
}, {passive: false});

canvas.addEventListener("dblclick", () => glide(everything()));

function letGo() {
    state.held = null;
    setCursor(null, false);
    choose(null, null);
    tellStory();
    setMode("peak");
}

/* Moves the picture when a step is out of sight. */
function reveal(step) {
    const span = view.t1 - view.t0;
    if (step < view.t0 || step + 1 > view.t1) setView({...view, t0: step + 0.5 - span / 2, t1: step + 0.5 + span / 2});
}

const middle = () => [box.left + plotWidth() / 2, box.top + plotHeight() / 2, true, true];
const keys = {
    "ArrowLeft": () => move(80, 0), "ArrowRight": () => move(-80, 0), "ArrowUp": () => move(0, 60), "ArrowDown": () => move(0, -60),
    "+": () => zoom(0.8, ...middle()), "=": () => zoom(0.8, ...middle()), "-": () => zoom(1.25, ...middle()),
    "0": () => glide(everything()),
    "p": () => { setCursor(shown.peakStep, true); setMode("peak"); reveal(shown.peakStep); },
    ",": () => { setCursor((state.cursor ?? shown.peakStep + 1) - 1, true); setMode("cursor"); reveal(state.cursor); },
    ".": () => { setCursor((state.cursor ?? shown.peakStep - 1) + 1, true); setMode("cursor"); reveal(state.cursor); },
    "/": () => $("filter").focus(),
};

addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") {
        document.activeElement?.blur?.();
        return letGo();
    }
    const by = event.target.closest?.("#list") ? {ArrowUp: -1, ArrowDown: 1, PageUp: -10, PageDown: 10}[event.key] : undefined;
    if (by) {
        event.preventDefault();
        return stepThroughList(by);
    }
    const typing = /^(input|select)$/i.test(event.target.tagName ?? "");
    const act = typing ? null : keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!act) return;
    event.preventDefault();
    act();
});

$("filter").addEventListener("input", (event) => {
    state.words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
    applyFilter();
});

document.querySelector(".tabs").addEventListener("click", (event) => event.target.dataset.mode && setMode(event.target.dataset.mode));
list.addEventListener("scroll", () => requestAnimationFrame(paintList), {passive: true});
/* Not pointerover, which comes as well when rows change beneath a hand at rest. */
list.addEventListener("pointermove", (event) => rowTensor(event) && choose(rowTensor(event), null));
list.addEventListener("pointerleave", () => choose(null, null));
list.addEventListener("click", (event) => {
    const t = rowTensor(event);
    if (!t) return;
    state.held = t;
    show(t);
    tellStory();
});
list.addEventListener("focusin", (event) => rowTensor(event) && choose(rowTensor(event), null));
$("legend").addEventListener("click", (event) => {
    const chip = event.target.closest("button");
    if (chip) showScope(Number(chip.dataset.scope));
});
for (const [id, key] of [["nearer", "+"], ["farther", "-"], ["whole", "0"], ["to-peak", "p"]])
    $(id).addEventListener("click", () => keys[key]());
$("region").addEventListener("change", (event) => {
    showRegion(Number(event.target.value));
    letGo();
    setView(everything());
});

/* The head of the page. */

function fillHead() {
    $("title").textContent = plan.title;
    const verdict = plan.proven ? "No plan is smaller." : `At most ${bytes(plan.gap)} above the minimum.`;
    const count = tensors.filter((t) => !t.owner && t.bytes > 0 && t.kind !== "growing").length;
    $("summary").textContent = `${bytes(plan.peak)} hold ${digits(count)} tensors of ${bytes(plan.naive)}. ${verdict}`;
    const total = (name, value, title, hot) =>
        $("totals").append(element("div", {title}, element("dt", {}, name), element("dd", {className: hot ? "hot" : ""}, value)));
    total("Peak", bytes(plan.peak), digits(plan.peak) + " bytes", true);
    total("Lower bound", bytes(plan.lower_bound), digits(plan.lower_bound) + " bytes: the most that is live at one step");
    if (plan.gap) total("Gap", bytes(plan.gap), `${digits(plan.gap)} bytes, ${(100 * plan.gap / plan.lower_bound).toFixed(2)} %`);
    total("Without reuse", bytes(plan.naive), digits(plan.naive) + " bytes");
    for (const [what, saved] of Object.entries(plan.saved)) if (saved) total("Saved by " + what, bytes(saved), digits(saved) + " bytes");
    total("Allocator", plan.allocator, digits(plan.nodes) + " search nodes");
    if (plan.regions.length > 1) {
        $("region").hidden = false;
        plan.regions.forEach((name, value) => $("region").append(element("option", {value}, name)));
    }
}

/* Where a tensor's block is on the screen, for scripts that drive the page. */
window.planLocate = (name) => {
    const b = blockBox(byName.get(name)), frame = canvas.getBoundingClientRect();
    return {x: frame.left + b.x + b.w / 2, y: frame.top + b.y + b.h / 2, width: b.w, height: b.h};
};

fillHead();
showRegion(0);
fillLegend();
Object.assign(view, everything());
readColours();
renewList();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", readColours);
new ResizeObserver(() => { paint(); paintList(); }).observe(canvas);
