/* The plan as a drawing: time to the right, addresses upward, one rectangle per tensor, below it the bytes live at each
 * step.  Plain SVG 1.1 with a style sheet that follows the reader's light or dark theme; hovering shows a tensor's
 * story, which is its <title>. */
#include <inttypes.h>
#include <string.h>

#include "plan/report.h"

#define WIDTH   1200.0 /* of the whole drawing, in user units */
#define LEFT    92.0
#define RIGHT   24.0
#define TALL    520.0 /* height of a region's picture */
#define AXIS    58.0  /* between the picture and the strip: steps, and the name of the fullest */
#define BRACKET 20.0  /* of a loop, for each that it lies in: between the steps and the name of the fullest */
#define STRIP   72.0  /* height of the strip of live bytes */
#define HEADER  132.0
#define GAP     52.0 /* between regions */
#define COLOURS 8
#define HEIRS   4 /* named in a story */

/* Colours are written out twice, since not every reader of SVG knows CSS variables; those ending in b are the second
 * shades. */
static const char style[] =
    "<style>\n"
    "svg{font-family:ui-sans-serif,system-ui,'Segoe UI',Roboto,Helvetica,Arial,sans-serif}\n"
    "text{font-size:12px}.num{font-variant-numeric:tabular-nums}.t text{pointer-events:none;font-size:11px}\n"
    ".head{font-size:22px;font-weight:650;letter-spacing:-.01em}.sub{font-size:13.5px}.axis{stroke-width:1}\n"
    ".peak,.low,.at,.loop{fill:none;stroke-width:1}.low{stroke-dasharray:5 4}.at{stroke-dasharray:2 "
    "3;stroke-opacity:.7}"
    ".band{fill-opacity:.09}.full{fill-opacity:.5}.live{fill-opacity:.28;stroke-opacity:.8}\n"
    ".halo{paint-order:stroke;stroke-width:4;stroke-linejoin:round}.t:hover rect{stroke-width:2}\n"
    ".paper{fill:#faf9f6}.halo{stroke:#faf9f6}text{fill:#1d1c1a}.soft,.sub{fill:#6c6860}.axis{stroke:#e6e2d9}"
    ".peak,.at{stroke:#b5432e}.hot,.band,.full{fill:#b5432e}.low,.live,.loop{stroke:#3d6f9f}.cool,.live{fill:#3d6f9f}"
    ".t:hover rect{stroke:#1d1c1a}\n"
    ".c0{fill:#9fc0e6}.c1{fill:#a3d1ba}.c2{fill:#efcd95}.c3{fill:#cbbae8}.c4{fill:#efb4a8}.c5{fill:#9ad0d6}"
    ".c6{fill:#d8d494}.c7{fill:#e6b3d1}.plain{fill:#d3cdbf}.scratch{fill:#b9b5ac}"
    ".c0.b{fill:#b7cfea}.c1.b{fill:#badbca}.c2.b{fill:#f2d8ae}.c3.b{fill:#d7caec}.c4.b{fill:#f2c6bc}"
    ".c5.b{fill:#b3dbde}.c6.b{fill:#e1dead}.c7.b{fill:#ebc5db}.plain.b{fill:#ddd8cd}\n"
    "@media(prefers-color-scheme:dark){.paper{fill:#151619}.halo{stroke:#151619}text{fill:#e9e6df}"
    ".soft,.sub{fill:#98948c}.axis{stroke:#2d2e34}.peak,.at{stroke:#ff8d74}.hot,.band,.full{fill:#ff8d74}"
    ".low,.live,.loop{stroke:#8ab8e6}.cool,.live{fill:#8ab8e6}.t:hover rect{stroke:#e9e6df}"
    ".c0{fill:#3f6798}.c1{fill:#326e56}.c2{fill:#7d6231}.c3{fill:#6a578f}.c4{fill:#8f564e}.c5{fill:#2f6c74}"
    ".c6{fill:#686537}.c7{fill:#864f70}.plain{fill:#5a5750}.scratch{fill:#46464b}"
    ".c0.b{fill:#345277}.c1.b{fill:#2a5746}.c2.b{fill:#624e2b}.c3.b{fill:#544670}.c4.b{fill:#6f4540}"
    ".c5.b{fill:#28565c}.c6.b{fill:#52502f}.c7.b{fill:#694059}.plain.b{fill:#484642}}\n"
    "</style>\n";

typedef struct Drawing {
    Text *out;
    Arena *arena;
    const PlanReport *report;
    int64_t *covered; /* per row: the step from which a result written over it hides it */
    uint32_t *heir;   /* per row: the first that takes over its memory ... */
    uint32_t *next;   /* ... and the next one after a row that takes over the same; PLAN_NO_ROW ends */
    uint32_t *turn;   /* per scope, and behind them of those without: how many have been drawn */
    uint32_t region;
    int64_t top;   /* bytes at the upper edge */
    int64_t bound; /* lower bound of this region, or 0 when it is not known */
    double y;      /* upper edge of the picture */
    double axis;   /* height of what is between the picture and the strip */
} Drawing;

static double x_of(const Drawing *d, int64_t step)
{
    double span = (double)d->report->last_step - (double)d->report->first_step;
    return LEFT + (WIDTH - LEFT - RIGHT) * ((double)step - (double)d->report->first_step) / (span > 0 ? span : 1);
}

static double y_of(const Drawing *d, int64_t address)
{
    return d->y + TALL * (1 - (double)address / (double)(d->top ? d->top : 1));
}

/* Who takes over whose memory, the first one first. */
static void find_heirs(Drawing *d)
{
    const PlanReport *r = d->report;
    d->covered = ARENA_ARRAY(d->arena, int64_t, r->count);
    d->heir = ARENA_ARRAY(d->arena, uint32_t, r->count);
    d->next = ARENA_ARRAY(d->arena, uint32_t, r->count);
    d->turn = ARENA_ARRAY(d->arena, uint32_t, r->scope_count + 1);
    for (uint32_t i = 0; i < r->count; i++) {
        d->heir[i] = d->next[i] = PLAN_NO_ROW;
        d->covered[i] = r->row[i].last;
    }
    for (uint32_t i = r->count; i-- > 0;) {
        uint32_t from = r->row[i].reuses;
        if (from == PLAN_NO_ROW)
            continue;
        d->next[i] = d->heir[from];
        d->heir[from] = i;
        if (r->row[i].first < d->covered[from])
            d->covered[from] = r->row[i].first;
    }
}

static void put_line(Drawing *d, const char *what, Str name)
{
    text_printf(d->out, "\n%s ", what);
    plan_escape_xml(d->out, name);
}

static void put_heirs(Drawing *d, uint32_t index)
{
    uint32_t count = 0;
    for (uint32_t heir = d->heir[index]; heir != PLAN_NO_ROW; heir = d->next[heir])
        if (count++ < HEIRS)
            put_line(d, count == 1 ? "taken over by" : "and", d->report->row[heir].name);
    if (count > HEIRS)
        text_printf(d->out, "\nand %u more", count - HEIRS);
}

static void put_story(Drawing *d, uint32_t index)
{
    char a[32], b[32];
    const PlanReport *r = d->report;
    const PlanRow *t = &r->row[index];
    text_printf(d->out, "<title>");
    plan_escape_xml(d->out, t->name);
    text_printf(d->out, t->type.len ? "  " : "");
    plan_escape_xml(d->out, t->type);
    text_printf(d->out, "\n%s bytes (%s)", plan_digits(a, t->bytes), plan_bytes(b, t->bytes));
    text_printf(d->out, "\nat %s to %s", plan_digits(a, t->offset), plan_digits(b, t->offset + t->bytes));
    text_printf(d->out, "\nlive in steps %" PRId64 " to %" PRId64, t->first, t->last - 1);
    if (r->step && t->first >= 0 && t->first < r->step_count)
        put_line(d, "made by", r->step[t->first]);
    if (r->step && t->last > 0 && t->last <= r->step_count)
        put_line(d, "last used by", r->step[t->last - 1]);
    if (t->reuses != PLAN_NO_ROW)
        put_line(d, r->row[t->reuses].last > t->first ? "in place of" : "takes over memory of", r->row[t->reuses].name);
    put_heirs(d, index);
    text_printf(d->out, "</title>");
}

static double text_width(Str s)
{
    return 6.1 * plan_columns(s) + 8; /* about, at 11 px */
}

/* Of a name the end tells most: `stage2.block0.a`, `block0.a`, `a`; empty when there is no room. */
static Str fit_name(Str name, double room)
{
    while (name.len && text_width(name) > room) {
        const char *dot = memchr(name.ptr, '.', name.len);
        uint32_t cut = dot ? (uint32_t)(dot - name.ptr) + 1 : name.len;
        name = (Str){name.ptr + cut, name.len - cut};
        if (name.len && name.ptr[0] >= '0' && name.ptr[0] <= '9') /* a number alone tells nothing */
            name.len = 0;
    }
    return name;
}

static void put_name(Drawing *d, Str name, double x, double y, double w, double h)
{
    bool upward = h >= w && w >= 13 && text_width(name) > w;
    Str shown = upward || h >= 13 ? fit_name(name, upward ? h : w) : (Str){0};
    if (!shown.len)
        return;
    if (upward)
        text_printf(d->out, "<text transform=\"translate(%.2f %.2f) rotate(-90)\" text-anchor=\"middle\">",
                    x + w / 2 + 4, y + h / 2);
    else
        text_printf(d->out, "<text x=\"%.2f\" y=\"%.2f\" text-anchor=\"middle\">", x + w / 2, y + h / 2 + 4);
    plan_escape_xml(d->out, shown);
    text_printf(d->out, "</text>");
}

/* By the part of the model, in two shades that take turns; where there are no parts, neighbours differ. */
static void put_class(Drawing *d, uint32_t index)
{
    const PlanReport *r = d->report;
    const PlanRow *t = &r->row[index];
    uint32_t scope = t->scope == PLAN_NO_ROW ? r->scope_count : t->scope;
    const char *shade = r->scope_count && d->turn[scope]++ % 2 ? " b" : "";
    if (t->kind == PLAN_SCRATCH)
        text_printf(d->out, "scratch");
    else if (scope < r->scope_count || !r->scope_count)
        text_printf(d->out, "c%u%s", (r->scope_count ? scope : index) % COLOURS, shade);
    else
        text_printf(d->out, "plain%s", shade);
}

/* With a hair of paper between neighbours. */
static double hair(double size)
{
    return size > 3 ? size - 1 : size > 0.6 ? size : 0.6;
}

static void put_tensor(Drawing *d, uint32_t index)
{
    const PlanRow *t = &d->report->row[index];
    double x = x_of(d, t->first), w = x_of(d, t->last) - x, y = y_of(d, t->offset + t->bytes);
    double h = y_of(d, t->offset) - y, seen = x_of(d, d->covered[index]) - x;
    text_printf(d->out, "<g class=\"t\"><rect class=\"");
    put_class(d, index);
    text_printf(d->out, "\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"", x, y, hair(w), hair(h));
    text_printf(d->out, w > 12 && h > 12 ? " rx=\"3\">" : ">");
    put_story(d, index);
    text_printf(d->out, "</rect>");
    put_name(d, t->name, x, y, seen, h);
    text_printf(d->out, "</g>\n");
}

/* A round step (1, 2 or 5 times a power of ten, or of two for bytes) that divides the range in at most `most` parts. */
static int64_t round_step(int64_t range, int64_t most, bool bytes)
{
    int64_t step = 1;
    for (int k = 0; range / step > most; k++) {
        if (bytes)
            step *= 2;
        else
            step = k % 3 == 1 ? step / 2 * 5 : step * 2;
        if (step > INT64_MAX / 4)
            break;
    }
    return step;
}

/* "4.50 MiB" as "4.5 MiB". */
static const char *round_bytes(char *buffer, int64_t bytes)
{
    char *unit = strchr(plan_bytes(buffer, bytes), ' '), *end = unit;
    if (!memchr(buffer, '.', (size_t)(unit - buffer)))
        return buffer;
    while (end[-1] == '0')
        end--;
    end -= end[-1] == '.';
    memmove(end, unit, strlen(unit) + 1);
    return buffer;
}

static void put_axes(Drawing *d)
{
    char a[32];
    const PlanReport *r = d->report;
    int64_t step = round_step(d->top, 9, true);
    for (int64_t at = 0; at <= d->top; at += step) {
        text_printf(d->out, "<path class=\"axis\" d=\"M%.1f %.2fH%.1f\"/>", LEFT, y_of(d, at), WIDTH - RIGHT);
        text_printf(d->out, "<text class=\"soft num\" text-anchor=\"end\" x=\"%.1f\" y=\"%.2f\">%s</text>\n", LEFT - 8,
                    y_of(d, at) + 4, round_bytes(a, at));
    }
    int64_t span = r->last_step - r->first_step, every = round_step(span, 16, false);
    int64_t past = r->first_step % every;
    for (int64_t at = r->first_step + (past > 0 ? every - past : -past); at < r->last_step; at += every)
        text_printf(d->out, "<text class=\"soft num\" x=\"%.2f\" y=\"%.2f\">%s</text>", x_of(d, at), d->y + TALL + 17,
                    plan_digits(a, at));
    text_char(d->out, '\n');
}

static void put_rectangle(Drawing *d, const char *class, double x, double y, double w, double h)
{
    text_printf(d->out, "<rect class=\"%s\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"/>\n", class, x, y, w,
                h > 0 ? h : 0);
}

/* Behind the blocks: the fullest step, and what lies between the lower bound and the peak. */
static void put_bands(Drawing *d, const PlanLevel *fullest)
{
    double x = x_of(d, fullest->step), w = x_of(d, fullest->step + 1) - x;
    if (d->bound)
        put_rectangle(d, "band", LEFT, y_of(d, d->top), WIDTH - LEFT - RIGHT, y_of(d, d->bound) - y_of(d, d->top));
    put_rectangle(d, "band", x, d->y, w > 1 ? w : 1, TALL);
}

static void put_mark(Drawing *d, const char *line, const char *colour, int64_t address, double below)
{
    text_printf(d->out, "<path class=\"%s\" d=\"M%.1f %.2fH%.1f\"/>", line, LEFT, y_of(d, address), WIDTH - RIGHT);
    text_printf(d->out, "<text class=\"%s num halo\" text-anchor=\"end\" x=\"%.1f\" y=\"%.2f\">", colour, WIDTH - RIGHT,
                y_of(d, address) + below);
}

/* Over the blocks: the peak, the lower bound, and where the fullest step begins and ends. */
static void put_marks(Drawing *d, const PlanLevel *fullest)
{
    char a[32], b[32];
    double x = x_of(d, fullest->step), end = x_of(d, fullest->step + 1);
    text_printf(d->out, "<path class=\"at\" d=\"M%.2f %.2fV%.2f", x, d->y, d->y + TALL);
    if (end > x + 4)
        text_printf(d->out, "M%.2f %.2fV%.2f", end, d->y, d->y + TALL);
    text_printf(d->out, "\"/>\n");
    if (d->bound && d->bound < d->top) {
        put_mark(d, "low", "cool", d->bound, 14);
        text_printf(d->out, "lower bound %s, gap %s</text>\n", plan_bytes(a, d->bound),
                    plan_bytes(b, d->top - d->bound));
    }
    put_mark(d, "peak", "hot", d->top, -6);
    text_printf(d->out, "%s %s</text>\n", d->bound == d->top ? "peak = lower bound" : "peak", plan_bytes(a, d->top));
}

/* The first of the levels with the most live bytes. */
static PlanLevel fullest_of(const PlanLevel *level, uint32_t count)
{
    PlanLevel fullest = {0};
    for (uint32_t i = 0; i < count; i++)
        if (level[i].live > fullest.live)
            fullest = level[i];
    return fullest;
}

static void put_strip(Drawing *d, const PlanLevel *level, uint32_t count, const PlanLevel *fullest)
{
    double base = d->y + TALL + d->axis + STRIP, scale = STRIP / (double)(fullest->live ? fullest->live : 1);
    text_printf(d->out, "<path class=\"live\" d=\"M%.2f %.2f", x_of(d, d->report->first_step), base);
    for (uint32_t i = 0; i < count; i++)
        text_printf(d->out, "H%.2fV%.2f", x_of(d, level[i].step), base - scale * (double)level[i].live);
    text_printf(d->out, "V%.2fZ\"/>\n", base);
    for (uint32_t i = 0; i + 1 < count; i++)
        if (level[i].live == fullest->live)
            put_rectangle(d, "full", x_of(d, level[i].step), base - STRIP,
                          x_of(d, level[i + 1].step) - x_of(d, level[i].step), STRIP);
    double x = x_of(d, fullest->step), w = x_of(d, fullest->step + 1) - x;
    put_rectangle(d, "hot", x, base - STRIP, w > 1.5 ? w : 1.5, fullest->live ? STRIP : 0);
    text_printf(d->out, "<path class=\"axis\" d=\"M%.1f %.2fH%.1f\"/>\n", LEFT, base, WIDTH - RIGHT);
    text_printf(d->out, "<text class=\"soft\" text-anchor=\"end\" x=\"%.1f\" y=\"%.2f\">live bytes</text>\n", LEFT - 8,
                base - STRIP / 2);
}

/* Loops as brackets under their steps, those in others beneath them, each with as much of its label as it has room for.
 */
static void put_loops(Drawing *d)
{
    const PlanReport *r = d->report;
    uint32_t levels;
    const uint32_t *depth = plan_loop_depths(d->arena, r, &levels);
    for (uint32_t i = 0; i < r->loop_count; i++) {
        double x = x_of(d, r->loop[i].first), end = x_of(d, r->loop[i].last);
        double y = d->y + TALL + 24 + BRACKET * depth[i];
        Str label = plan_loop_label(d->arena, &r->loop[i], false);
        if (text_width(label) + 40 > end - x)
            label = plan_loop_label(d->arena, &r->loop[i], true);
        double middle = (x + end) / 2, half = text_width(label) / 2 + 8;
        bool fits = 2 * half + 24 <= end - x;
        text_printf(d->out, "<path class=\"loop\" d=\"M%.2f %.2fv8", x + 1, y);
        if (fits)
            text_printf(d->out, "H%.2fM%.2f %.2f", middle - half, middle + half, y + 8);
        text_printf(d->out, "H%.2fv-8\"/>", end - 1);
        if (!fits)
            continue;
        text_printf(d->out, "<text class=\"cool num\" text-anchor=\"middle\" x=\"%.2f\" y=\"%.2f\">", middle, y + 12);
        plan_escape_xml(d->out, label);
        text_printf(d->out, "</text>");
    }
    if (r->loop_count)
        text_char(d->out, '\n');
}

/* Which kernel makes the peak, above its place in the strip. */
static void put_peak_name(Drawing *d, const PlanLevel *fullest)
{
    char bytes[16];
    Str name = str_format(d->arena, STR_FMT ": %s live", STR_ARG(plan_step_name(d->arena, d->report, fullest->step)),
                          plan_bytes(bytes, fullest->live));
    double half = text_width(name) / 2 + 8, x = (x_of(d, fullest->step) + x_of(d, fullest->step + 1)) / 2;
    x = x < LEFT + half ? LEFT + half : x > WIDTH - RIGHT - half ? WIDTH - RIGHT - half : x;
    text_printf(d->out, "<text class=\"hot num\" text-anchor=\"middle\" x=\"%.2f\" y=\"%.2f\">", x,
                d->y + TALL + d->axis - 8);
    plan_escape_xml(d->out, name);
    text_printf(d->out, "</text>\n");
}

/* The parts of the model by their colours, as many as fit on the line. */
static void put_legend(Text *out, const PlanReport *r)
{
    double x = LEFT;
    for (uint32_t i = 0; i < r->scope_count; i++) {
        double width = 6.6 * plan_columns(r->scope[i]) + 36; /* about, at 12 px */
        if (x + width > WIDTH - RIGHT - 60) {
            text_printf(out, "<text class=\"soft\" x=\"%.1f\" y=\"92\">and %u more</text>", x, r->scope_count - i);
            break;
        }
        text_printf(out, "<rect class=\"c%u\" x=\"%.1f\" y=\"82\" width=\"11\" height=\"11\" rx=\"3\"/>", i % COLOURS,
                    x);
        text_printf(out, "<text class=\"soft\" x=\"%.1f\" y=\"92\">", x + 17);
        plan_escape_xml(out, r->scope[i]);
        text_printf(out, "</text>");
        x += width;
    }
    text_char(out, '\n');
}

static void put_header(Text *out, const PlanReport *r)
{
    char a[32], b[32], c[32], d[32];
    text_printf(out, "<text class=\"head\" x=\"%.0f\" y=\"40\">", LEFT);
    plan_escape_xml(out, r->title);
    text_printf(out, "</text>\n<text class=\"sub\" x=\"%.0f\" y=\"64\">", LEFT);
    text_printf(out, "%s (%s bytes) for %s tensor%s of %s; ", plan_bytes(a, r->peak), plan_digits(b, r->peak),
                plan_digits(d, plan_stored(r)), plan_stored(r) == 1 ? "" : "s", plan_bytes(c, r->naive));
    if (r->proven)
        text_printf(out, "no plan is smaller");
    else
        text_printf(out, "at most %s bytes above the minimum", plan_digits(a, r->peak - r->lower_bound));
    text_printf(out, "; placed by %s</text>\n", r->allocator);
    put_legend(out, r);
}

static bool drawn(const Drawing *d, const PlanRow *row)
{
    return row->region == d->region && row->alias_of == PLAN_NO_ROW && row->bytes > 0;
}

static void put_region(Drawing *d)
{
    PlanLevel *level;
    const PlanReport *r = d->report;
    uint32_t count = plan_report_levels(d->arena, r, d->region, &level);
    PlanLevel fullest = fullest_of(level, count);
    d->top = 0;
    for (uint32_t i = 0; i < r->count; i++)
        if (drawn(d, &r->row[i]) && r->row[i].offset + r->row[i].bytes > d->top)
            d->top = r->row[i].offset + r->row[i].bytes;
    d->bound = r->region_count > 1 ? 0 : r->lower_bound;
    if (r->region && d->region < r->region_count) {
        text_printf(d->out, "<text x=\"%.0f\" y=\"%.1f\">", LEFT, d->y - 8);
        plan_escape_xml(d->out, r->region[d->region]);
        text_printf(d->out, "</text>\n");
    }
    put_axes(d);
    put_loops(d);
    if (fullest.live)
        put_bands(d, &fullest);
    for (uint32_t i = 0; i < r->count; i++)
        if (drawn(d, &r->row[i]))
            put_tensor(d, i);
    put_strip(d, level, count, &fullest);
    if (!fullest.live)
        return;
    put_marks(d, &fullest);
    put_peak_name(d, &fullest);
}

void plan_print_svg(Text *out, const PlanReport *r)
{
    Arena arena = {0};
    uint32_t regions = r->region_count ? r->region_count : 1;
    uint32_t levels;
    plan_loop_depths(&arena, r, &levels);
    double axis = AXIS + BRACKET * levels, height = HEADER + regions * (TALL + axis + STRIP + GAP);
    text_printf(out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" "
                "role=\"img\" aria-label=\"memory plan\">\n",
                WIDTH, height, WIDTH, height);
    text_put(out, style, sizeof style - 1);
    text_printf(out, "<rect width=\"100%%\" height=\"100%%\" class=\"paper\"/>\n");
    put_header(out, r);
    Drawing d = {.out = out, .arena = &arena, .report = r, .y = HEADER, .axis = axis};
    find_heirs(&d);
    for (; d.region < regions; d.region++, d.y += TALL + axis + STRIP + GAP)
        put_region(&d);
    text_printf(out, "</svg>\n");
    arena_free(&arena);
}
