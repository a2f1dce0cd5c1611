/* The roofline as a drawing: operations for each byte to the right, operations a second upward, both by powers of ten;
 * a slope for each level of memory, the peak across, a dot for each kernel whose area is its share of the time.  Plain
 * SVG 1.1 that follows the reader's light or dark theme; hovering shows a kernel's figures, which are its <title>. */
#include <math.h>

#include "cli/roofline.h"
#include "kernel/kernel.h"
#include "plan/report.h"

#define WIDTH       1000.0 /* of the whole drawing, in user units */
#define HEIGHT      640.0
#define LEFT        76.0
#define RIGHT       28.0
#define TOP         104.0
#define BOTTOM      64.0
#define LEAST_DOT   3.0
#define MOST_DOT    30.0 /* the radius of one that takes all of the time */
#define MOST_LABELS 12

static const char style[] =
    "<style>\n"
    "svg{font-family:ui-sans-serif,system-ui,'Segoe UI',Roboto,Helvetica,Arial,sans-serif}\n"
    "text{font-size:12px}.head{font-size:22px;font-weight:650;letter-spacing:-.01em}.sub{font-size:13.5px}\n"
    ".axis{stroke-width:1}.roof{fill:none;stroke-width:1.6}.level{fill:none;stroke-width:1.2}\n"
    ".halo{paint-order:stroke;stroke-width:4;stroke-linejoin:round}.dot{fill-opacity:.55;stroke-width:1.2}\n"
    ".dot:hover{fill-opacity:.9}.name{font-size:11px;pointer-events:none}\n"
    ".paper{fill:#faf9f6}.halo{stroke:#faf9f6}text{fill:#1d1c1a}.soft,.sub{fill:#6c6860}.axis{stroke:#e6e2d9}"
    ".roof{stroke:#b5432e}.hot{fill:#b5432e}.level{stroke:#3d6f9f}.cool{fill:#3d6f9f}"
    ".compute{fill:#d9735f;stroke:#b5432e}.memory{fill:#6f9fd0;stroke:#3d6f9f}.overhead{fill:#b9b5ac;stroke:#6c6860}\n"
    "@media(prefers-color-scheme:dark){.paper{fill:#151619}.halo{stroke:#151619}text{fill:#e9e6df}"
    ".soft,.sub{fill:#98948c}.axis{stroke:#2d2e34}.roof{stroke:#ff8d74}.hot{fill:#ff8d74}.level{stroke:#8ab8e6}"
    ".cool{fill:#8ab8e6}.compute{fill:#a4503f;stroke:#ff8d74}.memory{fill:#3f6798;stroke:#8ab8e6}"
    ".overhead{fill:#46464b;stroke:#98948c}}\n"
    "</style>\n";

typedef struct Chart {
    Text *out;
    const Roofline *roofline;
    double left, right, low, high; /* powers of ten at the edges */
    double label[MOST_LABELS][4];  /* boxes of names: x, y, width, height */
    uint32_t labels;
} Chart;

static double x_of(const Chart *c, double intensity)
{
    return LEFT + (WIDTH - LEFT - RIGHT) * (log10(intensity) - c->left) / (c->right - c->left);
}

static double y_of(const Chart *c, double rate)
{
    return TOP + (HEIGHT - TOP - BOTTOM) * (c->high - log10(rate)) / (c->high - c->low);
}

/* Operations for each byte and a second need both; what only moves bytes has no place here. */
static bool is_drawn(const RoofRow *row)
{
    return row->flops > 0 && row->bytes > 0 && row->second > 0;
}

static void widen(double *low, double *high, double value)
{
    *low = fmin(*low, floor(log10(value) - 0.05));
    *high = fmax(*high, ceil(log10(value) + 0.05));
}

/* All dots, and where the slopes meet the peak. */
static void find_edges(Chart *c)
{
    const Roofline *r = c->roofline;
    c->left = c->low = 12;
    c->right = c->high = -3;
    widen(&c->low, &c->high, r->peak);
    for (uint32_t i = 0; i < r->levels->count; i++)
        widen(&c->left, &c->right, r->peak / fmax(r->levels->level[i].bytes_second, 1));
    for (uint32_t i = 0; i < r->count; i++)
        if (is_drawn(&r->row[i])) {
            widen(&c->left, &c->right, r->row[i].flops / r->row[i].bytes);
            widen(&c->low, &c->high, r->row[i].flops / r->row[i].second);
        }
    c->low = fmin(c->low, c->high - 2);
}

static void put_axes(Chart *c)
{
    char a[32];
    double base = HEIGHT - BOTTOM;
    for (double p = c->left; p <= c->right; p++) {
        double x = x_of(c, pow(10, p));
        text_printf(c->out, "<path class=\"axis\" d=\"M%.1f %.1fV%.1f\"/>", x, TOP, base);
        text_printf(c->out, "<text class=\"soft\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\">%g</text>\n", x,
                    base + 18, pow(10, p));
    }
    for (double p = c->low; p <= c->high; p++) {
        double y = y_of(c, pow(10, p));
        text_printf(c->out, "<path class=\"axis\" d=\"M%.1f %.1fH%.1f\"/>", LEFT, y, WIDTH - RIGHT);
        text_printf(c->out, "<text class=\"soft\" text-anchor=\"end\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", LEFT - 8,
                    y + 4, roofline_amount(a, pow(10, p)));
    }
    text_printf(c->out,
                "<text class=\"soft\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\">operations for each byte</text>\n"
                "<text class=\"soft\" x=\"%.1f\" y=\"%.1f\">operations a second</text>\n",
                (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 22, LEFT, TOP - 12);
}

/* From the lower or the left edge up to the peak; its name stands along it. */
static void put_level(Chart *c, const Level *level)
{
    char a[32];
    double peak = c->roofline->peak, ridge = peak / level->bytes_second;
    double first = fmax(pow(10, c->left), pow(10, c->low) / level->bytes_second);
    double x = x_of(c, first), y = y_of(c, first * level->bytes_second), end = x_of(c, ridge), top = y_of(c, peak);
    double angle = atan2(top - y, end - x) * 180 / 3.14159265358979, at = 0.12;
    text_printf(c->out, "<path class=\"level\" d=\"M%.1f %.1fL%.1f %.1f\"/>", x, y, end, top);
    text_printf(c->out,
                "<text class=\"cool halo\" transform=\"translate(%.1f %.1f) rotate(%.1f)\" dy=\"-5\">%s %sB/s</text>\n",
                x + at * (end - x), y + at * (top - y), angle, level->name, roofline_amount(a, level->bytes_second));
}

static void put_roofs(Chart *c)
{
    char a[32];
    const Roofline *r = c->roofline;
    double left = WIDTH, y = y_of(c, r->peak);
    for (uint32_t i = 0; i < r->levels->count; i++)
        if (r->levels->level[i].bytes_second > 0) {
            put_level(c, &r->levels->level[i]);
            left = fmin(left, x_of(c, r->peak / r->levels->level[i].bytes_second));
        }
    text_printf(c->out, "<path class=\"roof\" d=\"M%.1f %.1fH%.1f\"/>", left, y, WIDTH - RIGHT);
    text_printf(c->out, "<text class=\"hot halo\" text-anchor=\"end\" x=\"%.1f\" y=\"%.1f\">peak %sFLOP/s</text>\n",
                WIDTH - RIGHT, y - 7, roofline_amount(a, r->peak));
}

static const char *class_of(const RoofRow *row)
{
    return row->bound == BOUND_COMPUTE ? "compute" : row->bound == BOUND_LEVEL ? "memory" : "overhead";
}

static void put_story(Chart *c, const RoofRow *row)
{
    char a[32], b[32];
    text_printf(c->out, "<title>%u ", row->number);
    plan_escape_xml(c->out, row->kernel->name);
    text_printf(c->out, " (%s)\n%s, %.1f %% of the run", row->kernel->recipe.provider->name,
                roofline_seconds(a, row->second), row->share * 100);
    text_printf(c->out, "\n%sFLOP/s", roofline_amount(a, row->flops / row->second));
    text_printf(c->out, "\n%s, %.2f operations for each byte\n", plan_bytes(b, (int64_t)row->bytes),
                row->flops / row->bytes);
    text_printf(c->out, "%.1f %% of the roof; bound by %s</title>", row->roof * 100, roofline_bound(row));
}

static double radius_of(const RoofRow *row)
{
    return LEAST_DOT + (MOST_DOT - LEAST_DOT) * sqrt(row->share);
}

/* The number in front is that of the table. */
static void put_label(Chart *c, const RoofRow *row)
{
    Str name = row->kernel->name;
    double x = x_of(c, row->flops / row->bytes) + radius_of(row) + 4, y = y_of(c, row->flops / row->second);
    double width = 6.2 * (plan_columns(name) + 4), height = 14;
    if (c->labels == MOST_LABELS || x + width > WIDTH - RIGHT)
        return;
    for (uint32_t i = 0; i < c->labels; i++) {
        const double *other = c->label[i];
        if (x < other[0] + other[2] && other[0] < x + width && fabs(y - other[1]) < height)
            return;
    }
    double *box = c->label[c->labels++];
    box[0] = x, box[1] = y, box[2] = width, box[3] = height;
    text_printf(c->out, "<text class=\"name halo\" x=\"%.1f\" y=\"%.1f\">%u ", x, y + 4, row->number);
    plan_escape_xml(c->out, name);
    text_printf(c->out, "</text>\n");
}

/* The longest first, so that the small lie on top, and the long get names. */
static void put_dots(Chart *c)
{
    const Roofline *r = c->roofline;
    Arena arena = {0};
    const RoofRow **order = ARENA_ARRAY(&arena, const RoofRow *, r->count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        uint32_t at = count;
        if (!is_drawn(&r->row[i]))
            continue;
        for (count++; at && order[at - 1]->second < r->row[i].second; at--)
            order[at] = order[at - 1];
        order[at] = &r->row[i];
    }
    for (uint32_t i = 0; i < count; i++) {
        const RoofRow *row = order[i];
        text_printf(c->out, "<circle class=\"dot %s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\">", class_of(row),
                    x_of(c, row->flops / row->bytes), y_of(c, row->flops / row->second), radius_of(row));
        put_story(c, row);
        text_printf(c->out, "</circle>\n");
    }
    for (uint32_t i = 0; i < count; i++)
        put_label(c, order[i]);
    arena_free(&arena);
}

static void put_legend(Chart *c)
{
    static const char *const word[] = {"compute", "memory", "overhead"};
    uint32_t left_out = 0;
    double x = LEFT;
    for (int i = 0; i < 3; i++, x += 96)
        text_printf(c->out,
                    "<circle class=\"dot %s\" cx=\"%.1f\" cy=\"70\" r=\"5\"/><text class=\"soft\" x=\"%.1f\" "
                    "y=\"74\">%s</text>\n",
                    word[i], x + 5, x + 15, word[i]);
    for (uint32_t i = 0; i < c->roofline->count; i++)
        left_out += !is_drawn(&c->roofline->row[i]);
    text_printf(c->out,
                "<text class=\"soft\" x=\"%.1f\" y=\"74\">what bounds a kernel; the area is its share of the time", x);
    if (left_out)
        text_printf(c->out, "; %u without operations %s not here", left_out, left_out == 1 ? "is" : "are");
    text_printf(c->out, "</text>\n");
}

void roofline_print_svg(Text *out, const Roofline *roofline)
{
    char a[32];
    Chart chart = {.out = out, .roofline = roofline};
    find_edges(&chart);
    text_printf(out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" role=\"img\">\n%s"
                "<rect class=\"paper\" width=\"%.0f\" height=\"%.0f\"/>\n<text class=\"head\" x=\"%.0f\" y=\"34\">",
                WIDTH, HEIGHT, style, WIDTH, HEIGHT, LEFT);
    plan_escape_xml(out, roofline->model);
    text_printf(out, "</text>\n<text class=\"sub\" x=\"%.0f\" y=\"55\">%s, one core, %s a run, %u kernel%s</text>\n",
                LEFT, roofline->target, roofline_seconds(a, roofline->second), roofline->count,
                roofline->count == 1 ? "" : "s");
    put_legend(&chart);
    put_axes(&chart);
    put_roofs(&chart);
    put_dots(&chart);
    text_printf(out, "</svg>\n");
}
