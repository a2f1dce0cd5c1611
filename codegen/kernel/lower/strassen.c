/* Products by Strassen's form (strassen.h): the recipe, its cost, and the provider's row.
 * Takes f32 products of rows in memory by a constant matrix, halves of whose depth are whole vectors and whose columns
 * are pairs of equal panels of vectors.  Not with lower->exact: sums are of other products than the model's. */
#include "kernel/lower/strassen.h"
#include "passes/integers.h"
#include "passes/mixing.h"

#include <assert.h>
#include <float.h>
#include <string.h>

enum { KNOB_HALF, KNOB_PIXELS, KNOB_VECTORS };

static const KnobSpec strassen_knobs[] = {
    {"half", 1024, "rows of half a block, which the other half is added to"},
    {"pixels", 24, "rows of a matrix, or pixels, whose sums stay in registers, at most"},
    {"vectors", 5, "of columns whose sums stay in registers"},
    {NULL, 0, NULL},
};

static bool mixes_rows(Lower *lower, const Node *node)
{
    if (!lower->mixing) {
        lower->mixing = ARENA_NEW(lower->arena, Mixing);
        *lower->mixing = mixing_find(lower->graph, lower->arena);
    }
    return mixing_of(lower->mixing, node->out[0], value_shape(lower->graph, node->out[0])->rank - 2);
}

/* Rows of a block are of one image, or places that the network mixes anyway: others may be samples, and who wants
 * blocks of these says of how many. */
static bool see_samples(Quarters *q, bool asked)
{
    const Tiled *con = &q->con;
    const Shape *y = value_shape(q->lower->graph, con->node->out[0]);
    int64_t all = con->out_h * con->out_w;
    if (con->is_product && (y->rank < 2 || !(asked || mixes_rows(q->lower, con->node))))
        return false;
    q->rows = con->is_product ? y->dim[y->rank - 2] : all;
    q->samples = all / most(1, q->rows);
    q->sample = index_var_new(q->lower->arena, "sample", 0, q->samples - 1);
    return q->rows > 1 && q->samples * q->rows == all;
}

#define MOST_DEPTH 4096 /* for which sums are within 1e-5 of the largest result (tests/emitted/strassen.py) */

static bool takes_window(const Tiled *con)
{
    return con->taps_h == 1 && con->taps_w == 1 && con->stride_h == 1 && con->stride_w == 1 && !con->pad_top &&
           !con->pad_left && con->in_h == con->out_h && con->in_w == con->out_w && !con->transposed;
}

static bool see(Lower *lower, Quarters *q, bool asked)
{
    const Target *target = lower->target;
    *q = (Quarters){.lower = lower, .lanes = target->lanes};
    Tiled *con = &q->con;
    if (target->dialect != DIALECT_VECTOR || lower->strip || q->lanes < 2 || !tiled_see(lower, con, 0))
        return false;
    if (con->phases != 1 || con->by_pixels || con->computed || con->pool || con->one_by_one || con->bundles != 1 ||
        con->joined != 1 || con->lanes != q->lanes || !takes_window(con) ||
        lower_has_other_windows(lower, lower->kernel) || integers_are_exact(lower->graph, con->node))
        return false;
    if (!con->packed || con->widened || con->source_count != 1 || con->weight_bytes != 4 || con->x_depth != 1 ||
        con->block_depth != q->lanes || con->depth % (2 * q->lanes) || con->depth > MOST_DEPTH ||
        (con->out_h > 1 && con->x_h != con->out_w * con->x_w) ||
        value_type(lower->graph, con->x_source)->dtype != DT_F32 ||
        lower->graph->value[con->source[0].value].trained) /* NAME_pack lays elements out, and adds none up */
        return false;
    q->half_depth = con->depth / 2;
    q->depth_vectors = q->half_depth / q->lanes;
    q->lane = index_var_new(lower->arena, "lane", 0, q->lanes - 1);
    return see_samples(q, asked);
}

/* Panels and register tiles, the fastest that divide the columns evenly: 14 rows by 2 vectors of 32 registers, 4 by 3
 * or 6 by 2 of 16. */
static bool set_panels(Quarters *q, const int64_t *asked)
{
    static const int64_t of_32[][2] = {{14, 2}, {9, 3}, {6, 4}, {5, 5}}, of_16[][2] = {{4, 3}, {6, 2}};
    const Target *target = q->lower->target;
    bool many = target->vector_registers >= 32;
    const int64_t(*tile)[2] = many ? of_32 : of_16;
    for (size_t i = 0; i < (many ? sizeof of_32 : sizeof of_16) / sizeof *tile; i++) {
        int64_t width = 2 * tile[i][1] * q->lanes;
        bool wanted = asked[KNOB_VECTORS] == KNOB_FREE || asked[KNOB_VECTORS] == tile[i][1];
        q->most_rows = asked[KNOB_PIXELS] > 0 ? asked[KNOB_PIXELS] : tile[i][0];
        q->vectors = tile[i][1];
        q->pairs = q->con.columns / width;
        if (wanted && q->con.columns % width == 0 && lower_points_fit_registers(target, q->most_rows, q->vectors))
            return true;
    }
    return false;
}

/* The sums lie as the rows do, whose vectors or whose neighbours are near each other.  Rows should not be whole pages
 * apart, which would crowd one set of the first level. */
static void set_strides(Quarters *q)
{
    q->in_blocks = !q->con.is_product && q->con.x_w == q->lanes;
    int64_t depth = q->half_depth + (q->half_depth % 256 ? 0 : q->lanes);
    q->row = q->in_blocks ? q->lanes : depth;
    q->vector = q->in_blocks ? q->half * q->lanes : q->lanes;
}

static void set_half(Quarters *q, int64_t half)
{
    Arena *arena = q->lower->arena;
    q->half = half;
    q->blocks = ceil_div(q->rows, 2 * half);
    set_strides(q);
    q->block = index_var_new(arena, "rows", 0, q->blocks - 1);
    q->pair = index_var_new(arena, "pair", 0, q->pairs - 1);
}

/* Cost: about how many cycles, beside those of the register tiles */

#define STORE_CYCLES   2.6 /* of a vector that is loaded, added up and stored */
#define NEAR_BYTES     256 /* a cycle, of weights for the first block, which come ahead of time ... */
#define PASS_BYTES     64  /* ... and for each other one, from the third level */
#define SPILL_BYTES    100 /* a cycle, of what a block keeps beyond the second level, for each pair of panels */
#define FAR_LEVELS     4   /* of second levels, of which more bytes of weights come from far */
#define FAR_BYTES      100 /* a cycle, of these, less what is hidden behind products */
#define LEAST_MEASURED 8   /* lanes, with which these have been */
#define MOST_LEVELS    3   /* that many second levels of scratch, and no more, are worth it for rows ... */
#define IMAGE_LEVELS   1.5 /* ... and for images, of which a network has larger ones and less weights */

static double images_of(const Quarters *q)
{
    double images = (double)q->samples;
    for (uint32_t d = 0; d < q->con.outer_count; d++)
        images *= (double)(q->con.outer[d]->high + 1);
    return images;
}

static double beyond(double bytes, double room)
{
    return bytes > room ? bytes - room : 0;
}

static double kept_bytes(const Quarters *q)
{
    return 4.0 * STRASSEN_PRODUCTS * (double)(quarters_sums(q) + q->half * q->vectors * q->lanes);
}

static double cost_of(const Quarters *q)
{
    const Target *target = q->lower->target;
    double products = STRASSEN_PRODUCTS, half = (double)q->half, panels = (double)(q->pairs * q->vectors);
    double weights = products * 4.0 * (double)(q->half_depth * q->con.columns / 2), start_and_store = 1.5;
    double steps = products * half * panels * ((double)q->half_depth / 2 + start_and_store);
    double stores = products * half * (double)q->depth_vectors + (products + 2 * STRASSEN_QUARTERS) * half * panels;
    double spills = beyond(kept_bytes(q), 0.75 * target->l2_bytes) * (double)q->pairs / SPILL_BYTES;
    double blocks = images_of(q) * (double)q->blocks;
    return blocks * (steps + stores * STORE_CYCLES + spills) + (blocks - 1) * weights / PASS_BYTES +
           weights / NEAR_BYTES + beyond(weights, FAR_LEVELS * target->l2_bytes) / FAR_BYTES;
}

/* The recipe */

/* One block unless others are asked for: threads share its panels, and each of these comes from memory once.  Several
 * take less scratch, but two threads that each passed over all weights were slower than tiles. */
static bool choose(Quarters *q, const int64_t *asked)
{
    int64_t most_rows = ceil_div(q->rows, 2);
    if (!set_panels(q, asked) || asked[KNOB_HALF] > most_rows)
        return false;
    set_half(q, asked[KNOB_HALF] > 0 ? asked[KNOB_HALF] : most_rows);
    return true;
}

static void plan_scratch(Quarters *q, Recipe *recipe)
{
    static const char *const name[QUARTERS_PIECES] = {"sums", "products"};
    int64_t elements[QUARTERS_PIECES] = {quarters_sums(q), q->half * q->vectors * q->lanes};
    bool several = q->blocks > 1 || images_of(q) > 1; /* which threads share out */
    for (uint32_t i = 0; i < QUARTERS_PIECES; i++)
        q->piece[i] = recipe_scratch(q->lower, recipe, name[i], DT_F32, STRASSEN_PRODUCTS * elements[i],
                                     several || i != QUARTERS_SUMS);
}

static bool plan(Lower *lower, Quarters *q, Recipe *recipe)
{
    const int64_t *asked = recipe->knob;
    if (asked[KNOB_HALF] == 0 || asked[KNOB_PIXELS] == 0 || asked[KNOB_VECTORS] == 0 ||
        !see(lower, q, asked[KNOB_HALF] != KNOB_FREE) || !choose(q, asked))
        return false;
    plan_scratch(q, recipe);
    return true;
}

static bool strassen_offers(Lower *lower, const Kernel *kernel, Recipe *recipe)
{
    Quarters q;
    (void)kernel;
    if (lower->exact || !plan(lower, &q, recipe))
        return false;
    recipe->knob[KNOB_HALF] = q.half;
    recipe->knob[KNOB_PIXELS] = q.most_rows;
    recipe->knob[KNOB_VECTORS] = q.vectors;
    return true;
}

static double strassen_cost(const Lower *lower, const Kernel *kernel, const Recipe *recipe)
{
    Lower copy = *lower;
    Recipe same = *recipe;
    Quarters q;
    (void)kernel;
    if (lower->lean || lower->target->lanes < LEAST_MEASURED)
        return DBL_MAX;
    bool offered = plan(&copy, &q, &same);
    assert(offered && "what was offered is offered again");
    (void)offered;
    double levels = q.con.is_product ? MOST_LEVELS : IMAGE_LEVELS;
    return kept_bytes(&q) > levels * lower->target->l2_bytes ? DBL_MAX : cost_of(&q);
}

/* Quarters of the constant, [pair][half of the depth][left, right][depth][column], of which the array has sums. */
static uint32_t pack_weights(const Quarters *q)
{
    const ConstantSource *source = &q->con.source[0];
    int64_t width = q->vectors * q->lanes;
    int64_t extent[] = {q->pairs, 2, 2, q->depth_vectors, q->lanes, width};
    int64_t stride[] = {2 * width * source->column,
                        q->depth_vectors * source->block,
                        width * source->column,
                        source->block,
                        source->depth,
                        source->column};
    Packing packing;
    memset(&packing, 0, sizeof packing); /* compared as bytes */
    packing.rank = 6;
    packing.quarter = q->half_depth * width;
    packing.start = source->start;
    memcpy(packing.extent, extent, sizeof extent);
    memcpy(packing.stride, stride, sizeof stride);
    return lower_weights(q->lower, source->value, &packing, STRASSEN_PRODUCTS * q->pairs * packing.quarter);
}

static void products(const Quarters *q, Block *block)
{
    PointProducts products = {.lower = q->lower,
                              .lane = q->lane,
                              .points = STRASSEN_PRODUCTS,
                              .depth = q->half_depth,
                              .rows = q->half,
                              .row = q->row,
                              .vector = q->vector,
                              .point = quarters_sums(q),
                              .most_rows = q->most_rows,
                              .from = lower_scratch(q->lower, q->piece[QUARTERS_SUMS]),
                              .to = lower_scratch(q->lower, q->piece[QUARTERS_PRODUCTS]),
                              .panel = q->pair,
                              .panels = q->pairs,
                              .vectors = q->vectors,
                              .weights = q->weights};
    lower_point_products(&products, block);
}

static Block *loop_over(const Quarters *q, Block *block, const Var *var)
{
    return var->high > 0 ? &stmt_for(q->lower->arena, block, var, 0, var->high + 1, 1, LOOP_PARALLEL)->body : block;
}

static void strassen_lower(Lower *lower)
{
    Quarters q;
    Recipe recipe = recipe_to_plan(&lower->kernel->recipe);
    bool offered = plan(lower, &q, &recipe);
    assert(offered && "what was offered is offered again");
    (void)offered;
    Tiled *con = &q.con;
    con->x = lower_buffer(lower, con->x_source, false);
    con->x_base = index_add(lower->arena, con->x_base, index_constant(-lower->kernel->buffer[con->x].begin));
    q.weights = pack_weights(&q);

    Block *block = lower->block;
    for (uint32_t d = 0; d < con->outer_count; d++)
        block = loop_over(&q, block, con->outer[d]);
    block = loop_over(&q, block, q.sample);
    block = loop_over(&q, block, q.block);
    quarters_of_rows(&q, block);
    block = loop_over(&q, block, q.pair);
    products(&q, block);
    quarters_results(&q, block);
}

const Provider provider_strassen = {
    .name = "strassen",
    .doc = "fewer products: seven of quarters of matrices in place of eight",
    .knob = strassen_knobs,
    .forms = 1u << FORM_CONTRACTION,
    .offers = strassen_offers,
    .cost = strassen_cost,
    .lower = strassen_lower,
};
