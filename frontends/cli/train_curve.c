/* The curves of a training as a drawing: a picture for each score, epochs to the right; a line for training, one with
 * dots for validation.  Plain SVG 1.1 whose style sheet follows the reader's light or dark theme. */
#include <math.h>

#include "api/prepare.h"
#include "cli/train_show.h"
#include "plan/report.h"

#define WIDTH  960.0 /* of the whole drawing, in user units */
#define LEFT   76.0
#define RIGHT  28.0
#define HEADER 84.0
#define TALL   260.0 /* height of a picture */
#define AXIS   64.0  /* below it: epochs, and the name of the next */
#define DECADE 10.0  /* values that span more than this have a logarithmic scale */

static const char style[] =
    "<style>\n"
    "svg{font-family:ui-sans-serif,system-ui,'Segoe UI',Roboto,Helvetica,Arial,sans-serif}\n"
    "text{font-size:12px;font-variant-numeric:tabular-nums}.head{font-size:20px;font-weight:650}.name{font-size:14px;"
    "font-weight:600}.axis{stroke-width:1}.line{fill:none;stroke-width:1.8;stroke-linejoin:round}\n"
    ".paper{fill:#faf9f6}text{fill:#1d1c1a}.soft{fill:#6c6860}.axis{stroke:#e6e2d9}.train{stroke:#3d6f9f}"
    ".valid{stroke:#b5432e}.dot{fill:#b5432e}\n"
    "@media(prefers-color-scheme:dark){.paper{fill:#151619}text{fill:#e9e6df}.soft{fill:#98948c}.axis{stroke:#2d2e34}"
    ".train{stroke:#8ab8e6}.valid{stroke:#ff8d74}.dot{fill:#ff8d74}}\n"
    "</style>\n";

typedef struct Picture { /* of one score */
    Text *out;
    Str name;
    const Series *train, *valid; /* or NULL */
    bool logarithmic;
    double low, high; /* of the axis; logarithms where it is that */
    double epochs;
    double y; /* upper edge */
} Picture;

static double scaled(const Picture *p, double value)
{
    return p->logarithmic ? log10(value) : value;
}

static double x_of(const Picture *p, double epoch)
{
    return LEFT + (WIDTH - LEFT - RIGHT) * epoch / p->epochs;
}

static double y_of(const Picture *p, double value)
{
    double share = (scaled(p, value) - p->low) / (p->high - p->low);
    return p->y + TALL * (1 - fmin(fmax(share, 0), 1));
}

static void widen(const Series *series, double *low, double *high)
{
    for (uint32_t i = 0; series && i < series->count; i++)
        if (isfinite(series->point[i].value)) {
            *low = fmin(*low, series->point[i].value);
            *high = fmax(*high, series->point[i].value);
        }
}

/* 1, 2 or 5 times a power of ten that divides the range in at most `most` parts. */
static double round_step(double range, int most)
{
    double power = pow(10, floor(log10(range / most))), left = range / most / power;
    return power * (left > 5 ? 10 : left > 2 ? 5 : left > 1 ? 2 : 1);
}

static void choose_scale(Picture *p)
{
    double low = INFINITY, high = -INFINITY;
    widen(p->train, &low, &high);
    widen(p->valid, &low, &high);
    if (!(low <= high))
        low = high = 0;
    p->logarithmic = low > 0 && high / low > DECADE;
    p->low = scaled(p, low);
    p->high = scaled(p, high);
    if (p->high - p->low < 1e-9 * fmax(1, fabs(p->high))) {
        p->low -= 0.5;
        p->high += 0.5;
    } else if (!p->logarithmic) {
        double step = round_step(p->high - p->low, 6);
        p->low = floor(p->low / step) * step;
        p->high = ceil(p->high / step) * step;
    }
}

static void put_height(const Picture *p, double value)
{
    bool share = str_is(p->name, "accuracy");
    double y = y_of(p, value);
    text_printf(p->out, "<path class=\"axis\" d=\"M%.1f %.2fH%.1f\"/>", LEFT, y, WIDTH - RIGHT);
    text_printf(p->out, "<text class=\"soft\" text-anchor=\"end\" x=\"%.1f\" y=\"%.2f\">%.4g%s</text>\n", LEFT - 8,
                y + 4, value * (share ? 100 : 1), share ? " %" : "");
}

static void put_heights(const Picture *p)
{
    static const double digit[] = {1, 2, 5};
    double step = round_step(p->high - p->low, 6);
    for (double at = p->low; !p->logarithmic && at <= p->high + step / 2; at += step)
        put_height(p, fabs(at) < step / 1e6 ? 0 : at);
    for (int k = (int)floor(p->low); p->logarithmic && k <= (int)floor(p->high); k++)
        for (int d = 0; d < 3; d++)
            if (k + log10(digit[d]) >= p->low && k + log10(digit[d]) <= p->high)
                put_height(p, digit[d] * pow(10, k));
}

static void put_epochs(const Picture *p)
{
    double step = fmax(1, round_step(p->epochs, 12));
    for (double at = 0; at <= p->epochs; at += step)
        text_printf(p->out, "<text class=\"soft\" text-anchor=\"middle\" x=\"%.2f\" y=\"%.1f\">%.0f</text>",
                    x_of(p, at), p->y + TALL + 18, at);
    text_char(p->out, '\n');
}

static void put_line(const Picture *p, const Series *series, const char *class)
{
    bool drawn = false;
    for (uint32_t i = 0; i < series->count; i++) {
        const CurvePoint *point = &series->point[i];
        if (!isfinite(point->value))
            continue;
        if (!drawn)
            text_printf(p->out, "<path class=\"line %s\" d=\"M", class);
        text_printf(p->out, "%s%.2f %.2f", drawn ? " " : "", x_of(p, point->at), y_of(p, point->value));
        drawn = true;
    }
    if (drawn)
        text_printf(p->out, "\"/>\n");
}

/* Each with its story for who points at it. */
static void put_dots(const Picture *p)
{
    for (uint32_t i = 0; i < p->valid->count; i++) {
        const CurvePoint *point = &p->valid->point[i];
        if (isfinite(point->value))
            text_printf(
                p->out,
                "<circle class=\"dot\" r=\"3\" cx=\"%.2f\" cy=\"%.2f\"><title>epoch %.0f: %.6g</title></circle>\n",
                x_of(p, point->at), y_of(p, point->value), point->at, point->value);
    }
}

static void put_picture(Picture *p)
{
    choose_scale(p);
    text_printf(p->out, "<text class=\"name\" x=\"%.1f\" y=\"%.1f\">", LEFT, p->y - 12);
    plan_escape_xml(p->out, p->name);
    text_printf(p->out, "</text>\n");
    put_heights(p);
    put_epochs(p);
    if (p->train)
        put_line(p, p->train, "train");
    if (!p->valid)
        return;
    put_line(p, p->valid, "valid");
    put_dots(p);
}

static void put_header(Text *out, const Trainer *t, double height)
{
    text_printf(out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" "
                "role=\"img\" aria-label=\"curves of a training\">\n",
                WIDTH, height, WIDTH, height);
    text_put(out, style, sizeof style - 1);
    text_printf(out,
                "<rect width=\"100%%\" height=\"100%%\" class=\"paper\"/>\n<text class=\"head\" x=\"%.0f\" y=\"34\">",
                LEFT);
    plan_escape_xml(out, prepare_stem(t->module->file[t->module->file_count - 1]));
    text_printf(out, ": ");
    plan_escape_xml(out, t->train.graph->name);
    text_printf(out,
                "</text>\n<path class=\"line train\" d=\"M%.0f 30h22\"/><text class=\"soft\" x=\"%.0f\" y=\"34\">"
                "training</text>\n",
                WIDTH - 240, WIDTH - 212);
    if (t->valid.graph)
        text_printf(out,
                    "<path class=\"line valid\" d=\"M%.0f 30h22\"/><text class=\"soft\" x=\"%.0f\" y=\"34\">"
                    "validation</text>\n",
                    WIDTH - 130, WIDTH - 102);
}

static const Series *find_series(const Scores *scores, const Series *series, Str name)
{
    for (uint32_t i = 0; i < scores->count; i++)
        if (str_eq(scores->at[i].name, name))
            return &series[i];
    return NULL;
}

/* The scores of training, then those that only validation has. */
static uint32_t list_names(Arena *arena, const Progress *p, Str **name)
{
    uint32_t count = 0;
    *name = ARENA_ARRAY(arena, Str, p->train.count + p->valid.count + 1);
    for (uint32_t i = 0; i < p->train.count; i++)
        (*name)[count++] = p->train.at[i].name;
    for (uint32_t i = 0; i < p->valid.count; i++)
        if (!find_series(&p->train, p->train_curve, p->valid.at[i].name))
            (*name)[count++] = p->valid.at[i].name;
    return count;
}

bool train_curve_write(const Trainer *t)
{
    const Progress *p = &t->progress;
    Arena scratch = {0};
    Text out = {0};
    Str *name;
    uint32_t count = list_names(&scratch, p, &name);

    put_header(&out, t, HEADER + count * (TALL + AXIS));
    for (uint32_t i = 0; i < count; i++)
        put_picture(&(Picture){.out = &out,
                               .name = name[i],
                               .train = find_series(&p->train, p->train_curve, name[i]),
                               .valid = find_series(&p->valid, p->valid_curve, name[i]),
                               .epochs = (double)p->epoch,
                               .y = HEADER + i * (TALL + AXIS)});
    text_printf(&out, "</svg>\n");
    bool good = file_write(&t->cli->diag, t->curve, out.ptr, out.len);
    text_free(&out);
    arena_free(&scratch);
    return good;
}
