/* Contractions by OpenBLAS (openblas.h): the recipe, and the provider's row.
 *
 * Needs: a target with libraries, sums in f32 or f64.  Otherwise nothing is changed and other providers do it. */
#include "kernel/lower/openblas.h"

#include "base/number.h"

#include <assert.h>

enum { KNOB_LINES };

static const KnobSpec openblas_knobs[] = {
    {"lines", 512, "of the outermost axis of rows, in one product: lines of an image, rows of a matrix"},
    {NULL, 0, NULL},
};

#define COPY_BYTES (1 << 20) /* of a copy, about: it stays in the caches between its making and the product */
#define MANY_ROWS  256       /* are cut into products of half as many at least, which threads may share */

/* Lines */

/* Is `a` nearer to what is wanted, by ratio? */
static bool is_nearer(int64_t a, int64_t b, int64_t wanted)
{
    double x = (double)a / (double)wanted, y = (double)b / (double)wanted;
    return (x > 1 ? x : 1 / x) < (y > 1 ? y : 1 / y);
}

/* The divisor nearest to what is wanted, and at most `limit`: 1,009 has none but 1 and itself. */
static int64_t near_divisor(int64_t of, int64_t wanted, int64_t limit)
{
    int64_t best = 1;
    for (int64_t d = 1; d <= of / d; d++) {
        if (of % d == 0 && d <= limit && is_nearer(d, best, wanted))
            best = d;
        if (of % d == 0 && of / d <= limit && is_nearer(of / d, best, wanted))
            best = of / d;
    }
    return best;
}

/* As many as keep copies small; many rows in several products, whatever the threads, so that bits do not depend on
 * these. */
static int64_t choose_lines(const Blas *b)
{
    const BlasAxes *rows = &b->side[SIDE_ROWS];
    if (!rows->count)
        return 1;
    int64_t all = b->con.axis[rows->axis[0]].extent, line = rows->extent / all;
    int64_t row_bytes = dtype_bytes(b->dtype) * (!b->first.direct * b->side[SIDE_DEPTH].extent +
                                                 !b->result.direct * b->side[SIDE_COLUMNS].extent);
    int64_t wanted = row_bytes ? most(1, COPY_BYTES / (line * row_bytes)) : all;
    if (rows->extent >= MANY_ROWS)
        wanted = least(wanted, most(most(1, MANY_ROWS / 2 / line), ceil_div(all, 8)));
    return near_divisor(all, wanted, row_bytes ? 4 * wanted : all);
}

static bool cut_lines(Blas *b, int64_t asked)
{
    BlasAxes *rows = &b->side[SIDE_ROWS];
    int64_t all = rows->count ? b->con.axis[rows->axis[0]].extent : 1;
    b->lines = asked == KNOB_FREE ? choose_lines(b) : asked;
    if (b->lines < 1 || b->lines > all || all % b->lines)
        return false;
    rows->extent = rows->extent / all * b->lines;
    b->chunk = b->lines < all ? index_var_new(b->lower->arena, "chunk", 0, all / b->lines - 1) : NULL;
    return true;
}

static void add_scratch(const Blas *b, Recipe *recipe, BlasMatrix *m, const char *name, bool per_thread)
{
    int64_t rows = b->side[m->major].extent, columns = b->side[m->minor].extent;
    m->piece = NONE;
    if (m->direct)
        return;
    m->stride = m->transposed ? rows : columns;
    m->piece = recipe_scratch(b->lower, recipe, name, b->dtype, rows * columns, per_thread);
}

static bool plan(Lower *lower, Blas *b, Recipe *recipe)
{
    if (!blas_see(lower, b) || !cut_lines(b, recipe->knob[KNOB_LINES]))
        return false;
    add_scratch(b, recipe, &b->first, "patches", true);
    add_scratch(b, recipe, &b->second, "packed", true);
    add_scratch(b, recipe, &b->result, "product", true);
    recipe->rewrites = b->result.direct;
    return true;
}

static bool openblas_offers(Lower *lower, const Kernel *kernel, Recipe *recipe)
{
    Blas b;
    (void)kernel;
    if (!plan(lower, &b, recipe))
        return false;
    recipe->knob[KNOB_LINES] = b.lines;
    return true;
}

/* Where the user asks for the library it takes all it can.  Else: calls, copies through the caches, and the product at
 * nine tenths of the peak of two vectors a cycle where it is large. */
static double openblas_cost(const Lower *lower, const Kernel *kernel, const Recipe *recipe)
{
    const double call = 2000, fill = 32;
    double lanes = (double)lower->target->lanes, copied = 0;
    if (lower->target->backend == BACKEND_OPENBLAS)
        return 0;
    Contraction con = contraction_of(lower->graph, &lower->graph->node[kernel->anchor]);
    double depth = (double)(contraction_extent(&con, AXIS_SUM) * contraction_extent(&con, AXIS_TAP));
    double columns = (double)contraction_extent(&con, AXIS_COLUMN);
    for (uint32_t i = 0; i < recipe->scratch_count; i++)
        copied += (double)recipe->scratch[i].elements;
    copied *= (double)contraction_extent(&con, AXIS_ROW) / (double)most(1, recipe->knob[KNOB_LINES]);
    double peak = 4 * (con.sum == DT_F64 ? lanes / 2 : lanes) * 0.9;
    double full = (depth / (depth + fill)) * (columns / (columns + fill));
    return call + copied / lanes +
           (double)node_flops(lower->graph, &lower->graph->node[kernel->anchor]) / (peak * full);
}

static void openblas_lower(Lower *lower)
{
    Blas b;
    Recipe recipe = recipe_to_plan(&lower->kernel->recipe);
    bool offered = plan(lower, &b, &recipe);
    assert(offered && "what was offered is offered again");
    (void)offered;
    blas_emit(&b);
}

const Provider provider_openblas = {
    .name = "openblas",
    .doc = "products of matrices by OpenBLAS, with --backend openblas or auto; of windows, of copies of what they see",
    .knob = openblas_knobs,
    .forms = 1u << FORM_CONTRACTION,
    .library = true,
    .offers = openblas_offers,
    .cost = openblas_cost,
    .lower = openblas_lower,
};
