/* What is on the screen. */

const view = {t0: 0, t1: 1, a0: 0, a1: 1};
const state = {hover: null, held: null, cursor: null, cursorHeld: false, mode: "peak", words: [], scope: null, pointer: null};
const canvas = $("picture"), screen = canvas.getContext("2d");
const layer = document.createElement("canvas").getContext("2d"); /* the blocks, kept while only the cursor moves */
const box = {left: 84, right: 22, top: 46, strip: 64, axis: 44 + 20 * loopLevels};
let draw = screen, colours = {}, width = 0, height = 0, ratio = 1, asked = false, painted = "";

const plotWidth = () => Math.max(10, width - box.left - box.right);
const plotHeight = () => Math.max(10, height - box.top - box.axis - box.strip - 36);
const xOf = (step) => box.left + ((step - view.t0) / (view.t1 - view.t0)) * plotWidth();
const yOf = (address) => box.top + (1 - (address - view.a0) / (view.a1 - view.a0)) * plotHeight();
const stepAt = (x) => view.t0 + ((x - box.left) / plotWidth()) * (view.t1 - view.t0);
const addressAt = (y) => view.a0 + (1 - (y - box.top) / plotHeight()) * (view.a1 - view.a0);
const matches = (t) => !t.off;

/* Of the filter's words and the chosen part of the model. */
function applyFilter() {
    for (const t of tensors)
        t.off = (state.scope !== null && t.scope !== state.scope) || !state.words.every((word) => t.words.includes(word));
    list.scrollTop = 0;
    renewList();
    redraw();
}

function everything() {
    return {t0: firstStep, t1: Math.max(lastStep, firstStep + 1), a0: 0, a1: Math.max(shown.height, bound()) * 1.03};
}

/* With several regions the file has one bound for all, which says nothing of each. */
const bound = () => (plan.regions.length > 1 ? 0 : plan.lower_bound);

/* Keeps some of the picture in sight, and one step or 16 bytes as the least to see. */
function setView(next) {
    const all = everything();
    const span = Math.min(Math.max(next.t1 - next.t0, 1), (all.t1 - all.t0) * 1.2);
    const range = Math.min(Math.max(next.a1 - next.a0, 16), all.a1 * 1.2);
    view.t0 = Math.min(Math.max(next.t0, all.t0 - span * 0.3), all.t1 - span * 0.7);
    view.a0 = Math.min(Math.max(next.a0, -range * 0.1), Math.max(all.a1 - range * 0.7, 0));
    view.t1 = view.t0 + span;
    view.a1 = view.a0 + range;
    redraw();
}

function zoom(factor, x, y, time, address) {
    const t = stepAt(x), a = addressAt(y), ft = time ? factor : 1, fa = address ? factor : 1;
    setView({t0: t + (view.t0 - t) * ft, t1: t + (view.t1 - t) * ft, a0: a + (view.a0 - a) * fa, a1: a + (view.a1 - a) * fa});
}

function move(dx, dy) {
    const t = (dx / plotWidth()) * (view.t1 - view.t0), a = (dy / plotHeight()) * (view.a1 - view.a0);
    setView({t0: view.t0 - t, t1: view.t1 - t, a0: view.a0 + a, a1: view.a1 + a});
}

function glide(target) {
    const from = {...view}, begin = performance.now();
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return setView(target);
    const frame = (now) => {
        const k = Math.min(1, (now - begin) / 220), ease = 1 - (1 - k) ** 3, at = {};
        for (const key in from) at[key] = from[key] + (target[key] - from[key]) * ease;
        setView(at);
        if (k < 1) requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
}

/* Drawing. */

function redraw() {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
        asked = false;
        paint();
    });
}

/* Between two colours #rrggbb. */
function mix(one, other, part) {
    const channel = (colour, k) => parseInt(colour.slice(1 + 2 * k, 3 + 2 * k), 16);
    const mixed = [0, 1, 2].map((k) => Math.round(channel(one, k) * (1 - part) + channel(other, k) * part));
    return "#" + mixed.map((value) => value.toString(16).padStart(2, "0")).join("");
}

function readColours() {
    const style = getComputedStyle(document.documentElement);
    const hues = [...Array(HUES).keys()].map((k) => "c" + k);
    colours = {};
    for (const name of ["paper", "card", "ink", "soft", "line", "faint", "hot", "cool", "plain", "scratch", ...hues])
        colours["--" + name] = style.getPropertyValue("--" + name).trim();
    for (const name of ["plain", ...hues]) {
        colours[`--${name}b`] = mix(colours["--" + name], colours["--paper"], 0.26);
        document.documentElement.style.setProperty(`--${name}b`, colours[`--${name}b`]);
    }
    painted = "";
    redraw();
}

const family = getComputedStyle(document.body).fontFamily;

function font(size, weight = 400) {
    draw.font = `${weight} ${size}px ${family}`;
}

function line(x0, y0, x1, y1, colour, dash = []) {
    draw.strokeStyle = colour;
    draw.setLineDash(dash);
    draw.beginPath();
    draw.moveTo(x0, y0);
    draw.lineTo(x1, y1);
    draw.stroke();
    draw.setLineDash([]);
}

function label(text, x, y, colour, align = "left", halo = false) {
    draw.textAlign = align;
    if (halo) {
        draw.strokeStyle = colours["--paper"];
        draw.lineWidth = 4;
        draw.lineJoin = "round";
        draw.strokeText(text, x, y);
        draw.lineWidth = 1;
    }
    draw.fillStyle = colour;
    draw.fillText(text, x, y);
}

/* A round step of about range / parts: 1, 2, 5 times a power of ten, or a power of two. */
function roundStep(range, parts, binary) {
    const rough = range / parts;
    if (binary) return 2 ** Math.ceil(Math.log2(Math.max(rough, 1)));
    const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
    return Math.max(1, [1, 2, 5, 10].find((k) => k * power >= rough) * power);
}

function paintGrid() {
    const bottom = box.top + plotHeight(), right = width - box.right;
    font(11);
    const rise = roundStep(view.a1 - view.a0, plotHeight() / 52, true);
    for (let a = Math.max(0, Math.ceil(view.a0 / rise) * rise); a <= view.a1; a += rise) {
        const y = Math.round(yOf(a)) + 0.5;
        line(box.left, y, right, y, colours["--line"]);
        label(a ? roundBytes(a) : "0", box.left - 12, y + 4, colours["--soft"], "right");
    }
    const stride = roundStep(view.t1 - view.t0, plotWidth() / 76, false);
    for (let t = Math.max(firstStep, Math.ceil(view.t0 / stride) * stride); t < Math.min(view.t1, lastStep); t += stride) {
        const one = xOf(t + 1) - xOf(t), x = one > 30 ? xOf(t + 0.5) : xOf(t);
        if (one > 30 || x + draw.measureText(digits(t)).width < width)
            label(digits(t), x, bottom + 18, colours["--soft"], one > 30 ? "center" : "left");
        if (stride === 1 && stepName(t)) label(fit(stepName(t), one - 8), x, bottom + 32, colours["--soft"], "center");
    }
}

/* Brackets under the steps, those in others beneath them. */
function paintLoops() {
    const top = box.top + plotHeight() + 38, right = width - box.right;
    font(11.5, 500);
    for (const loop of loops) {
        const x0 = Math.max(xOf(loop.first), box.left) + 1, x1 = Math.min(xOf(loop.last + 1), right) - 1, y = top + 20 * loop.depth;
        if (x1 <= x0) continue;
        const text = fit(loopText(loop), x1 - x0 - 24), half = text ? draw.measureText(text).width / 2 + 8 : 0, middle = (x0 + x1) / 2;
        if (xOf(loop.first) >= box.left) line(x0, y, x0, y + 8, colours["--cool"]);
        if (xOf(loop.last + 1) <= right) line(x1, y, x1, y + 8, colours["--cool"]);
        line(x0, y + 8, middle - half, y + 8, colours["--cool"]);
        line(middle + half, y + 8, x1, y + 8, colours["--cool"]);
        label(text, middle, y + 12, colours["--cool"], "center");
    }
}

/* The text, or as much of its head as there is room for. */
function fit(text, room) {
    if (room < 8) return "";
    if (draw.measureText(text).width <= room) return text;
    let low = 0, high = text.length;
    while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (draw.measureText(text.slice(0, middle) + "…").width <= room) low = middle;
        else high = middle - 1;
    }
    return low > 2 ? text.slice(0, low) + "…" : "";
}

/* Of a tensor's name the end tells most: `stage2.block0.a`, `block0.a`, `a`. */
function fitName(name, room) {
    for (let at = 0; ; ) {
        const rest = name.slice(at);
        if (at && /^\d/.test(rest)) return ""; /* a number alone tells nothing */
        if (draw.measureText(rest).width <= room) return rest;
        const dot = name.indexOf(".", at);
        if (dot < 0) return fit(rest, room);
        at = dot + 1;
    }
}

/* x, y, width and height on the screen, with a hair of paper between neighbours. */
function blockBox(t) {
    const x = xOf(t.first), y = yOf(t.top), w = xOf(t.end) - x, h = yOf(t.offset) - y;
    return {x, y, w: Math.max(w - (w > 3 ? 1 : 0), 0.7), h: Math.max(h - (h > 3 ? 1 : 0), 0.7)};
}

function path(b, inset = 0) {
    const r = Math.min(4, b.w / 5, b.h / 5);
    draw.beginPath();
    if (r > 1) draw.roundRect(b.x + inset, b.y + inset, b.w - 2 * inset, b.h - 2 * inset, r);
    else draw.rect(b.x + inset, b.y + inset, b.w - 2 * inset, b.h - 2 * inset);
}

/* The part of a block that is in sight carries its name: across where it fits, else upward, else cut short. */
function paintName(t, b) {
    const left = Math.max(b.x, box.left), right = Math.min(b.x + b.w, width - box.right, t.covered ? xOf(t.covered) : Infinity);
    const top = Math.max(b.y, box.top), bottom = Math.min(b.y + b.h, box.top + plotHeight());
    const w = right - left - 10, h = bottom - top, centre = (left + right) / 2, middle = (top + bottom) / 2;
    font(12, 500);
    const full = draw.measureText(t.name).width, upward = w + 10 >= 12 && h - 12 > w && h >= 32;
    if (h >= 15 && (full <= w || (w >= 32 && !upward))) {
        const sized = h >= 38 && w >= 56;
        label(fitName(t.name, w), centre, middle + (sized ? -3 : 4), colours["--ink"], "center");
        if (!sized) return;
        font(11);
        draw.globalAlpha *= 0.7;
        label(fit(bytes(t.bytes), w), centre, middle + 13, colours["--ink"], "center");
    } else if (upward) {
        if (w < 6) font(10.5, 500);
        draw.save();
        draw.translate(centre + 4, middle);
        draw.rotate(-Math.PI / 2);
        label(fitName(t.name, h - 12), 0, 0, colours["--ink"], "center");
        draw.restore();
    }
}

/* Blocks of a few pixels, of which there may be tens of thousands, are written into an image pixel by pixel. */
const specks = {context: document.createElement("canvas").getContext("2d"), image: null, pixel: null, used: false};

function clearSpecks() {
    const {context, image} = specks, w = Math.ceil(plotWidth() * ratio), h = Math.ceil(plotHeight() * ratio);
    if (image && image.width === w && image.height === h) {
        if (specks.used) specks.pixel.fill(0);
    } else {
        context.canvas.width = w;
        context.canvas.height = h;
        specks.image = context.createImageData(w, h);
        specks.pixel = new Uint32Array(specks.image.data.buffer);
    }
    specks.used = false;
}

const clamp = (at, most) => Math.min(Math.max(Math.round(at * ratio), 0), most);

/* x and y from the plot's corner; with a hair of paper at the right and below where there is room for it. */
function paintSpeck(x, y, w, h, colour) {
    const {image, pixel} = specks, wide = image.width, tall = image.height, left = clamp(x, wide), top = clamp(y, tall);
    const right = Math.min(Math.max(clamp(x + w - (w > 3 ? 1 : 0), wide), left + 1), wide);
    const bottom = Math.min(Math.max(clamp(y + h - (h > 3 ? 1 : 0), tall), top + 1), tall);
    for (let row = top; row < bottom; row++)
        for (let at = row * wide + left, end = row * wide + right; at < end; at++) pixel[at] = colour;
    specks.used = true;
}

/* A colour #rrggbb as a pixel of an image; opacity from 0 to 255. */
function pixelOf(colour, opacity) {
    const bytes = new Uint8Array([1, 3, 5].map((k) => parseInt(colour.slice(k, k + 2), 16)).concat(opacity));
    return new Uint32Array(bytes.buffer)[0];
}

function paintBlock(t) {
    const b = blockBox(t);
    path(b);
    draw.fill();
    if (t.inPlace && b.w > 3) line(b.x, b.y, b.x, b.y + b.h, colours["--paper"]); /* its operand lies beneath */
    if (b.w > 11 && b.h > 13) paintName(t, b);
    draw.globalAlpha = 1;
}

function paintBlocks() {
    const pale = {}, full = {};
    const across = plotWidth() / (view.t1 - view.t0), up = plotHeight() / (view.a1 - view.a0), right = plotWidth(), bottom = plotHeight();
    for (const t of shown.blocks) {
        const w = (t.end - t.first) * across, h = t.bytes * up, x = (t.first - view.t0) * across, y = bottom - (t.top - view.a0) * up;
        if (x > right || x + w < 0 || y > bottom || y + h < 0) continue;
        const off = t.off, colour = colours[t.colour];
        if (w < 9 || h < 9) {
            const pixel = off ? (pale[colour] ??= pixelOf(colour, 30)) : (full[colour] ??= pixelOf(colour, 255));
            paintSpeck(x, y, w, h, pixel);
            continue;
        }
        draw.globalAlpha = off ? 0.12 : 1;
        draw.fillStyle = colour;
        paintBlock(t);
    }
    draw.globalAlpha = 1;
    if (!specks.used) return;
    specks.context.putImageData(specks.image, 0, 0);
    draw.drawImage(specks.context.canvas, box.left, box.top, specks.image.width / ratio, specks.image.height / ratio);
}

/* Behind the blocks: the fullest step, and what lies between the lower bound and the peak. */
function paintBands() {
    const low = bound(), x0 = xOf(shown.peakStep), x1 = xOf(shown.peakStep + 1);
    draw.fillStyle = colours["--hot"];
    draw.globalAlpha = 0.09;
    if (shown.peakLive) draw.fillRect(x0, box.top, Math.max(x1 - x0, 1), plotHeight());
    if (low && low < shown.height) draw.fillRect(box.left, yOf(shown.height), plotWidth(), yOf(low) - yOf(shown.height));
    draw.globalAlpha = 1;
}

function clipped(paintInside) {
    draw.save();
    draw.beginPath();
    draw.rect(box.left, box.top - 1, plotWidth(), plotHeight() + 1);
    draw.clip();
    paintInside();
    draw.restore();
}

/* Drawn anew only when something else than the cursor has changed. */
function paintLayer() {
    const key = JSON.stringify([view, width, height, ratio, shown.region, state.words, state.scope]);
    if (key !== painted) {
        layer.canvas.width = canvas.width;
        layer.canvas.height = canvas.height;
        layer.setTransform(ratio, 0, 0, ratio, 0, 0);
        draw = layer;
        paintGrid();
        paintLoops();
        clearSpecks();
        clipped(() => { paintBands(); paintBlocks(); });
        paintStrip();
        draw = screen;
        painted = key;
    }
    screen.drawImage(layer.canvas, 0, 0);
    screen.setTransform(ratio, 0, 0, ratio, 0, 0);
}

/* The block that is told of, whose memory it takes over, and who takes over its own. */
function paintChosen() {
    const chosen = state.hover ?? state.held;
    if (!chosen) return;
    const block = chosen.owner ?? chosen;
    for (const kin of [block.from, ...block.reusedBy]) if (kin) outline(kin, colours["--cool"], 1.5);
    outline(block, colours["--ink"], 2);
    draw.setLineDash([3, 3]);
    for (const part of block.views ?? []) if (part.bytes < block.bytes) outline(part, colours["--ink"], 1);
    draw.setLineDash([]);
}

function outline(t, colour, thickness) {
    draw.strokeStyle = colour;
    draw.lineWidth = thickness;
    path(blockBox(t), thickness / 2);
    draw.stroke();
    draw.lineWidth = 1;
}

/* A label at the right edge, on its line or beneath it. */
function mark(address, text, colour, dash, above) {
    const right = width - box.right, y = Math.round(yOf(address)) + 0.5;
    if (y < box.top - 1 || y > box.top + plotHeight()) return;
    font(11.5, 500);
    line(box.left, y, right, y, colour, dash);
    label(text, right, y + (above ? -6 : 15), colour, "right", true);
}

function paintMarks() {
    const low = bound(), gap = shown.height - low, right = width - box.right;
    if (low && gap > 0)
        mark(low, `lower bound ${bytes(low)}, gap ${bytes(gap)} (${(100 * gap / low).toFixed(1)} %)`, colours["--cool"], [5, 4], false);
    mark(shown.height, `${low && gap <= 0 ? "peak = lower bound" : "peak"}  ${bytes(shown.height)}`, colours["--hot"], [], true);
    const x0 = Math.max(xOf(shown.peakStep), box.left), x1 = Math.min(xOf(shown.peakStep + 1), right);
    if (!shown.peakLive || x1 < box.left || x0 > right) return;
    draw.globalAlpha = 0.6;
    for (const x of x1 - x0 > 4 ? [x0, x1] : [(x0 + x1) / 2]) line(x, box.top, x, box.top + plotHeight(), colours["--hot"], [2, 3]);
    draw.globalAlpha = 1;
}

/* Which kernel makes the peak, above the strip. */
function paintPeakName(top) {
    const right = width - box.right, x = xOf(shown.peakStep + 0.5);
    if (!shown.peakLive || x < box.left || x > right) return;
    const kernel = stepName(shown.peakStep), step = `${kernel}${kernel && ", "}step ${digits(shown.peakStep)}`;
    font(11.5, 500);
    const text = fit(`${step}: ${bytes(shown.peakLive)} live`, plotWidth()), half = draw.measureText(text).width / 2;
    label(text, Math.min(Math.max(x, box.left + half), right - half), top, colours["--hot"], "center", true);
}

function paintStrip() {
    const base = height - 14, tall = box.strip, right = width - box.right;
    const y = (live) => base - (live / Math.max(shown.peakLive, 1)) * tall;
    draw.save();
    draw.beginPath();
    draw.rect(box.left, base - tall - 4, plotWidth(), tall + 5);
    draw.clip();
    draw.beginPath();
    draw.moveTo(xOf(firstStep), base);
    let before = base, column = -Infinity, highest = base;
    for (const level of shown.levels) { /* of many levels within half a pixel, the highest and the last */
        const x = xOf(level.step), at = y(level.live);
        if (x - column < 0.5) {
            if (at < highest) draw.lineTo(column, (highest = at));
            before = at;
            continue;
        }
        draw.lineTo(x, before);
        draw.lineTo(x, (before = highest = at));
        column = x;
    }
    draw.lineTo(xOf(lastStep), base);
    draw.fillStyle = draw.strokeStyle = colours["--cool"];
    draw.globalAlpha = 0.28;
    draw.fill();
    draw.globalAlpha = 0.8;
    draw.stroke();
    draw.fillStyle = colours["--hot"];
    shown.levels.forEach((level, k) => { /* all steps that are as full, the first of them strongest */
        if (level.live < shown.peakLive) return;
        const x0 = xOf(level.step), x1 = xOf(shown.levels[k + 1]?.step ?? lastStep), one = xOf(level.step + 1);
        draw.globalAlpha = 0.45;
        draw.fillRect(x0, y(level.live), Math.max(x1 - x0, 1.5), base - y(level.live));
        draw.globalAlpha = 1;
        if (level.step === shown.peakStep) draw.fillRect(x0, y(level.live), Math.max(one - x0, 1.5), base - y(level.live));
    });
    draw.restore();
    line(box.left, base + 0.5, right, base + 0.5, colours["--line"]);
    font(11);
    label("live bytes", box.left - 12, base - tall / 2 + 4, colours["--soft"], "right");
    paintPeakName(base - tall - 9);
}

function paintCursor() {
    if (state.cursor === null) return;
    const x = Math.min(Math.max(xOf(state.cursor + 0.5), box.left), width - box.right);
    const name = stepName(state.cursor) ? `${digits(state.cursor)}  ${stepName(state.cursor)}` : `step ${digits(state.cursor)}`;
    const text = `${name}   ${bytes(liveBytes(state.cursor))} live`;
    line(Math.round(x) + 0.5, box.top - 8, Math.round(x) + 0.5, height - 14, colours["--ink"], state.cursorHeld ? [] : [2, 3]);
    font(12, 500);
    const w = draw.measureText(text).width + 18, left = Math.min(Math.max(x - w / 2, 6), width - w - 6);
    draw.fillStyle = state.cursorHeld ? colours["--ink"] : colours["--card"];
    draw.strokeStyle = colours["--line"];
    draw.beginPath();
    draw.roundRect(left, 7.5, w, 23, 7);
    draw.fill();
    draw.stroke();
    label(text, left + 9, 23, state.cursorHeld ? colours["--paper"] : colours["--ink"]);
}

function paint() {
    ratio = devicePixelRatio || 1;
    width = canvas.clientWidth;
    height = canvas.clientHeight;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
        canvas.width = Math.round(width * ratio);
        canvas.height = Math.round(height * ratio);
    }
    screen.setTransform(1, 0, 0, 1, 0, 0);
    screen.clearRect(0, 0, canvas.width, canvas.height);
    paintLayer();
    paintMarks();
    clipped(paintChosen);
    paintCursor();
    placeCard();
}
