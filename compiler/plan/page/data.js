"use strict";
const $ = (id) => document.getElementById(id);
const plan = JSON.parse($("plan").textContent);
const tensors = plan.tensors.map((t, index) => ({...t, index, end: t.last + 1, top: t.offset + (t.span ?? t.bytes), reusedBy: []}));

/* Numbers and names. */

const digits = (n) => n.toLocaleString("en-US");

function bytes(n) {
    let unit = 0;
    for (; Math.abs(n) >= 1024 && unit < 6; unit++) n /= 1024;
    return (unit ? n.toFixed(Math.abs(n) < 10 ? 2 : 1) : Math.round(n)) + " " + ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"][unit];
}

/* For scales: no idle zeros behind the point. */
function roundBytes(n) {
    const [number, unit] = bytes(n).split(" ");
    return `${Number(number)} ${unit}`;
}

const stepName = (step) => plan.steps[step] ?? "";
const stepText = (step) => (stepName(step) ? `${stepName(step)} (${step})` : `step ${digits(step)}`);

function element(tag, attributes, ...children) {
    const node = Object.assign(document.createElement(tag), attributes);
    node.append(...children);
    return node;
}

/* Loops, each with how many others it lies in. */

const loops = [];
for (const loop of plan.loops ?? []) loops.push({...loop, depth: loops.filter((other) => other.last >= loop.first).length});
const loopLevels = loops.reduce((most, loop) => Math.max(most, loop.depth + 1), 0);

function loopText(loop) {
    const turns = loop.carried.filter((c) => c.places > 1).map((c) => `${c.name} in ${c.places} places`);
    return [loop.rounds ? `at most ${digits(loop.rounds)} rounds` : "loop", ...turns].join(", ");
}

/* Colours of parts of the model, and what stands in for a part. */

const HUES = 8, PLAIN = -1, SCRATCH = -2;

/* Who takes over whose memory. */

const byName = new Map();
for (const t of tensors) if (!byName.has(t.name)) byName.set(t.name, t);
for (const t of tensors) {
    t.from = t.reuses === undefined ? undefined : byName.get(t.reuses);
    t.owner = t.alias_of === undefined ? undefined : byName.get(t.alias_of);
    t.from?.reusedBy.push(t);
    if (t.owner) (t.owner.views = t.owner.views ?? []).push(t);
    t.inPlace = t.from && t.from.last >= t.first;
    if (t.inPlace) t.from.covered = Math.min(t.from.covered ?? Infinity, t.first);
    t.scope ??= PLAIN;
    t.words = t.name.toLowerCase();
}
for (const t of tensors) if (t.owner) t.owner.words += "\n" + t.words; /* a view is found by its owner's block */

/* Colour tells the part of the model.  What is of none is plain, scratch is grey.  Where no parts are to be told apart,
 * neighbours are. */

const scopes = plan.scopes.map((name, k) => ({name, hue: k % HUES, count: 0})); /* by first use */

function chooseColours() {
    const named = tensors.filter((t) => !t.owner && t.kind !== "scratch").sort((a, b) => a.first - b.first), seen = new Map();
    for (const t of tensors) {
        t.colour = "--scratch";
        if (t.kind === "scratch") t.scope = SCRATCH;
    }
    named.forEach((t, k) => {
        const turn = seen.get(t.scope) ?? 0, scope = scopes[t.scope];
        seen.set(t.scope, turn + 1);
        if (scope) scope.count++;
        const base = scope ? "--c" + scope.hue : scopes.length ? "--plain" : "--c" + (k % HUES);
        t.colour = scopes.length && turn % 2 ? base + "b" : base; /* two shades of one hue keep neighbours apart */
    });
    for (const t of tensors) {
        if (t.kind === "growing") t.colour = byName.get(t.name.slice(0, t.name.lastIndexOf("@")))?.colour ?? t.colour;
        if (t.owner) t.colour = t.owner.colour;
    }
}

chooseColours();

/* The region on show: its blocks, and the bytes live over time.  Two blocks that share addresses while both live (one is
 * computed in place of the other) count once, so every pair is looked at when the later one begins. */

const firstStep = tensors.reduce((least, t) => Math.min(least, t.first), Infinity);
const lastStep = tensors.reduce((most, t) => Math.max(most, t.end), -Infinity);
const shown = {region: 0, blocks: [], levels: [], height: 1, peakLive: 0, peakStep: 0};

function showRegion(region) {
    shown.region = region;
    shown.blocks = tensors.filter((t) => t.region === region && !t.owner && t.bytes > 0).sort((a, b) => a.first - b.first);
    shown.height = shown.blocks.reduce((most, t) => Math.max(most, t.top), 1);
    const change = new Map();
    const add = (step, amount) => change.set(step, (change.get(step) ?? 0) + amount);
    let active = [];
    for (const t of shown.blocks) {
        active = active.filter((other) => other.end > t.first);
        for (const other of active) {
            const common = Math.min(t.top, other.top) - Math.max(t.offset, other.offset);
            if (common <= 0) continue;
            add(t.first, -common);
            add(Math.min(t.end, other.end), common);
        }
        active.push(t);
        add(t.first, t.bytes);
        add(t.end, -t.bytes);
    }
    let live = 0;
    shown.levels = [...change].sort((a, b) => a[0] - b[0]).map(([step, amount]) => ({step, live: (live += amount)}));
    shown.peakLive = shown.levels.reduce((most, l) => Math.max(most, l.live), 0);
    shown.peakStep = shown.levels.find((l) => l.live === shown.peakLive)?.step ?? 0;
    shown.largest = shown.blocks.reduce((most, t) => Math.max(most, t.bytes), 1);
}

function liveBytes(step) {
    let low = 0, high = shown.levels.length;
    while (low < high) {
        const middle = (low + high) >> 1;
        if (shown.levels[middle].step <= step) low = middle + 1;
        else high = middle;
    }
    return low ? shown.levels[low - 1].live : 0;
}

const liveAt = (step) => shown.blocks.filter((t) => t.first <= step && step < t.end);
