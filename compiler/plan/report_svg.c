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
#define STRIP   84.0  /* height of the strip of live bytes */
#define HEADER  92.0
#define GAP     46.0
#define COLOURS 8

/* Colours are written out twice, since not every reader of SVG knows CSS variables. */
static const char style[] =
    "<style>\n"
    "svg{font-family:ui-sans-serif,system-ui,'Segoe UI',Roboto,Helvetica,Arial,sans-serif}\n"
    "text{font-size:12px}.num{font-variant-numeric:tabular-nums}.t text{pointer-events:none;font-size:11px}\n"
    ".head{font-size:22px;font-weight:650;letter-spacing:-.01em}.sub{font-size:13.5px}\n"
    ".axis{stroke-width:1}.mark{stroke-width:1.5;stroke-dasharray:6 4}.t rect{stroke-width:1}.live{opacity:.6}\n"
    ".t:hover rect{stroke-width:2}\n"
    ".paper{fill:#fff}text{fill:#1d2430}.soft,.sub{fill:#6b7484}.axis{stroke:#e3e7ee}.mark{stroke:#d1495b}"
    ".hot{fill:#c23a4d}.t rect{stroke:#fff}.t:hover rect{stroke:#1d2430}\n"
    ".c0,.live{fill:#8db4e2}.c1{fill:#97cfb0}.c2{fill:#f4cd8b}.c3{fill:#cbb2e4}.c4{fill:#f2b1ab}.c5{fill:#92d3d8}"
    ".c6{fill:#dcd796}.c7{fill:#c3c9d4}\n"
    "@media(prefers-color-scheme:dark){.paper{fill:#12161d}text{fill:#e6eaf2}.soft,.sub{fill:#8d97a8}"
    ".axis{stroke:#262d38}.mark{stroke:#ff7b88}.hot{fill:#ff7b88}.t rect{stroke:#12161d}.t:hover rect{stroke:#e6eaf2}"
    ".c0,.live{fill:#3f6ea8}.c1{fill:#3f8060}.c2{fill:#94702c}.c3{fill:#735a96}.c4{fill:#9c5650}.c5{fill:#357c83}"
    ".c6{fill:#7d7838}.c7{fill:#566072}}\n"
    "</style>\n";

typedef struct Drawing {
    Text *out;
    const PlanReport *report;
    uint32_t region;
    int64_t top; /* bytes at the upper edge */
    double y;    /* upper edge of the picture */
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

static void put_story(Drawing *d, const PlanRow *t)
{
    char a[32], b[32];
    const PlanReport *r = d->report;
    text_printf(d->out, "<title>");
    plan_escape_xml(d->out, t->name);
    if (t->type.len) {
        text_printf(d->out, "  ");
        plan_escape_xml(d->out, t->type);
    }
    text_printf(d->out, "\n%s bytes (%s)", plan_digits(a, t->bytes), plan_bytes(b, t->bytes));
    text_printf(d->out, "\nat %s to %s", plan_digits(a, t->offset), plan_digits(b, t->offset + t->bytes));
    text_printf(d->out, "\nlive in steps %" PRId64 " to %" PRId64, t->first, t->last - 1);
    if (r->step && t->first >= 0 && t->first < r->step_count) {
        text_printf(d->out, "\nmade by ");
        plan_escape_xml(d->out, r->step[t->first]);
    }
    if (r->step && t->last > 0 && t->last <= r->step_count) {
        text_printf(d->out, "\nlast used by ");
        plan_escape_xml(d->out, r->step[t->last - 1]);
    }
    if (t->reuses != PLAN_NO_ROW) {
        text_printf(d->out, "\ntakes over memory of ");
        plan_escape_xml(d->out, r->row[t->reuses].name);
    }
    text_printf(d->out, "</title>");
}

static void put_tensor(Drawing *d, uint32_t index)
{
    const PlanRow *t = &d->report->row[index];
    double x = x_of(d, t->first), w = x_of(d, t->last) - x, y = y_of(d, t->offset + t->bytes);
    double h = y_of(d, t->offset) - y;
    text_printf(d->out, "<g class=\"t\"><rect class=\"c%u\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\">",
                index % COLOURS, x, y, w > 0.6 ? w : 0.6, h > 0.6 ? h : 0.6);
    put_story(d, t);
    text_printf(d->out, "</rect>");
    double width = 6.1 * t->name.len + 8; /* of the name, about, at 11 px */
    if (h >= 13 && width <= w) {
        text_printf(d->out, "<text x=\"%.2f\" y=\"%.2f\" text-anchor=\"middle\">", x + w / 2, y + h / 2 + 4);
        plan_escape_xml(d->out, t->name);
        text_printf(d->out, "</text>");
    } else if (w >= 13 && width <= h) {
        text_printf(d->out, "<text transform=\"translate(%.2f %.2f) rotate(-90)\" text-anchor=\"middle\">",
                    x + w / 2 + 4, y + h / 2);
        plan_escape_xml(d->out, t->name);
        text_printf(d->out, "</text>");
    }
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

static void put_axes(Drawing *d)
{
    char a[32];
    const PlanReport *r = d->report;
    int64_t step = round_step(d->top, 9, true);
    for (int64_t at = 0; at <= d->top; at += step) {
        text_printf(d->out, "<path class=\"axis\" d=\"M%.1f %.2fH%.1f\"/>", LEFT, y_of(d, at), WIDTH - RIGHT);
        text_printf(d->out, "<text class=\"soft num\" text-anchor=\"end\" x=\"%.1f\" y=\"%.2f\">%s</text>\n", LEFT - 8,
                    y_of(d, at) + 4, plan_bytes(a, at));
    }
    int64_t span = r->last_step - r->first_step, every = round_step(span, 16, false);
    for (int64_t at = r->first_step; at < r->last_step; at += every)
        text_printf(d->out, "<text class=\"soft num\" x=\"%.2f\" y=\"%.2f\">%" PRId64 "</text>", x_of(d, at),
                    d->y + TALL + 18, at);
    text_char(d->out, '\n');
}

static void put_strip(Drawing *d)
{
    Arena scratch = {0};
    char a[32];
    PlanLevel *level;
    uint32_t n = plan_report_levels(&scratch, d->report, d->region, &level);
    double base = d->y + TALL + 38 + STRIP, scale = STRIP / (double)(d->top ? d->top : 1);
    int64_t most = 0, when = 0;
    text_printf(d->out, "<path class=\"live\" d=\"M%.2f %.2f", x_of(d, d->report->first_step), base);
    for (uint32_t i = 0; i < n; i++) {
        text_printf(d->out, "H%.2fV%.2f", x_of(d, level[i].step), base - scale * (double)level[i].live);
        if (level[i].live > most) {
            most = level[i].live;
            when = level[i].step;
        }
    }
    text_printf(d->out, "V%.2fZ\"/>\n<path class=\"axis\" d=\"M%.1f %.2fH%.1f\"/>\n", base, LEFT, base, WIDTH - RIGHT);
    text_printf(d->out, "<text class=\"soft\" text-anchor=\"end\" x=\"%.1f\" y=\"%.2f\">live bytes</text>\n", LEFT - 8,
                base - STRIP / 2);
    double x = x_of(d, when);
    text_printf(d->out, "<path class=\"mark\" d=\"M%.2f %.2fV%.2f\"/>", x, d->y, base);
    text_printf(d->out, "<text class=\"hot num\" text-anchor=\"%s\" x=\"%.2f\" y=\"%.2f\">%s at step %" PRId64,
                x > WIDTH * 0.7 ? "end" : "start", x + (x > WIDTH * 0.7 ? -6 : 6), base + 16, plan_bytes(a, most),
                when);
    if (d->report->step && when >= 0 && when < d->report->step_count) {
        text_printf(d->out, ", ");
        plan_escape_xml(d->out, d->report->step[when]);
    }
    text_printf(d->out, "</text>\n");
    arena_free(&scratch);
}

static void put_header(Text *out, const PlanReport *r)
{
    char a[32], b[32], c[32];
    text_printf(out, "<text class=\"head\" x=\"%.0f\" y=\"40\">", LEFT);
    plan_escape_xml(out, r->title);
    text_printf(out, "</text>\n<text class=\"sub\" x=\"%.0f\" y=\"64\">", LEFT);
    text_printf(out, "%s (%s bytes) for %u tensors of %s; ", plan_bytes(a, r->peak), plan_digits(b, r->peak),
                plan_stored(r), plan_bytes(c, r->naive));
    if (r->proven)
        text_printf(out, "no plan is smaller");
    else
        text_printf(out, "at most %s bytes above the minimum", plan_digits(a, r->peak - r->lower_bound));
    text_printf(out, "; placed by %s</text>\n", r->allocator);
}

void plan_print_svg(Text *out, const PlanReport *r)
{
    uint32_t regions = r->region_count ? r->region_count : 1;
    double height = HEADER + regions * (TALL + STRIP + GAP + 38);
    text_printf(out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" "
                "role=\"img\" aria-label=\"memory plan\">\n",
                WIDTH, height, WIDTH, height);
    text_put(out, style, sizeof style - 1);
    text_printf(out, "<rect width=\"100%%\" height=\"100%%\" class=\"paper\"/>\n");
    put_header(out, r);
    Drawing d = {.out = out, .report = r, .y = HEADER};
    for (d.region = 0; d.region < regions; d.region++, d.y += TALL + STRIP + GAP + 38) {
        d.top = 0;
        for (uint32_t i = 0; i < r->count; i++)
            if (r->row[i].region == d.region && r->row[i].offset + r->row[i].bytes > d.top)
                d.top = r->row[i].offset + r->row[i].bytes;
        if (r->region && d.region < r->region_count) {
            text_printf(out, "<text x=\"%.0f\" y=\"%.1f\">", LEFT, d.y - 8);
            plan_escape_xml(out, r->region[d.region]);
            text_printf(out, "</text>\n");
        }
        put_axes(&d);
        for (uint32_t i = 0; i < r->count; i++)
            if (r->row[i].region == d.region && r->row[i].alias_of == PLAN_NO_ROW && r->row[i].bytes > 0)
                put_tensor(&d, i);
        put_strip(&d);
    }
    text_printf(out, "</svg>\n");
}
