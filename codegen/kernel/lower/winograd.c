/* 3x3 convolutions by minimal filtering (winograd.h): the recipe, and the provider's row.
 * Takes f32 convolutions of stride 1, undilated and ungrouped, whose image is in memory and whose weights are
 * constants that are transformed at compile time.  Not with lower->exact: sums are of other products than the model's.
 */
#include "kernel/lower/winograd.h"

#include <assert.h>

enum { KNOB_RESULTS, KNOB_HEIGHT, KNOB_PIXELS, KNOB_VECTORS };

static const KnobSpec winograd_knobs[] = {
    {"results", 4, "along each side of a tile: 2 or 4"},
    {"height", 32, "rows of tiles that are transformed together"},
    {"pixels", 24, "tiles whose sums stay in registers, at most"},
    {"vectors", 8, "of outputs whose sums stay in registers, at most"},
    {NULL, 0, NULL},
};

/* Sums, a vector of weights and an element in registers: 14 x 2 of 32, 6 x 2 of 16; more vectors beside few tiles. */
static void choose_panels(Filter *filter, const int64_t *asked)
{
    int64_t registers = filter->lower->target->vector_registers, vectors = least(2, filter->output_vectors);
    int64_t pixels = registers >= 32 ? 14 : 6;
    if (vectors == 1)
        pixels = least(2 * pixels, registers - 4);
    if (filter->tiles < pixels) {
        pixels = filter->tiles;
        vectors = least(filter->output_vectors, least(8, (registers - 1) / (pixels + 1)));
    }
    filter_set_panels(filter, asked[KNOB_PIXELS] > 0 ? asked[KNOB_PIXELS] : pixels,
                      asked[KNOB_VECTORS] > 0 ? asked[KNOB_VECTORS] : vectors);
}

static bool fits_registers(const Filter *filter)
{
    return lower_points_fit_registers(filter->lower->target, least(filter->pixels, filter->tiles),
                                      filter->panels[0].vectors);
}

#define MOST_ROWS 32
#define MOST_CHANNELS                                                                                                  \
    1024               /* for which tiles of 4 x 4 are within 1e-5 of the largest result (tests/emitted/winograd.py) */
#define MUCH_LESS 0.97 /* cycles, for which larger blocks are worth their memory */

/* Whole windows of a pooling are of one block. */
static bool cuts_windows(const Filter *filter)
{
    return filter->pool && filter->blocks > 1 && filter->rows * filter->form.results % filter->pool_stride;
}

/* What a filter of so many results takes with the cheapest of its blocks, or with those that are asked for; `best` is
 * it when it takes less. */
static void try_form(const Filter *from, uint32_t results, const int64_t *asked, Filter *best, double *least_cost)
{
    Filter filter = *from;
    if (results > 2 && filter.conv.channels > MOST_CHANNELS)
        return;
    filter_set_form(&filter, results);
    int64_t rows = asked[KNOB_HEIGHT] > 0 ? asked[KNOB_HEIGHT] : 1;
    int64_t most_rows = asked[KNOB_HEIGHT] > 0 ? rows : least(MOST_ROWS, filter.tile_rows);
    for (; rows <= least(most_rows, filter.tile_rows); rows++) {
        filter_set_block(&filter, rows);
        choose_panels(&filter, asked);
        if (!fits_registers(&filter) || cuts_windows(&filter))
            continue;
        double cost = filter_cost(&filter);
        if (best->rows && cost >= MUCH_LESS * *least_cost)
            continue;
        *best = filter;
        *least_cost = cost;
    }
}

static bool choose(Filter *filter, const int64_t *asked)
{
    Filter best = {.rows = 0};
    double cost = 0;
    for (uint32_t results = 2; results <= WINOGRAD_MOST_RESULTS; results += 2)
        if (asked[KNOB_RESULTS] == KNOB_FREE || asked[KNOB_RESULTS] == results)
            try_form(filter, results, asked, &best, &cost);
    *filter = best;
    return best.rows > 0;
}

static void plan_scratch(Lower *lower, Filter *filter, Recipe *recipe)
{
    static const char *const name[FILTER_PIECES] = {"line", "tiles", "products", "strip", "sums", "band"};
    int64_t size = filter->form.size, results = filter->form.results, lanes = filter->lanes, vectors = 0;
    bool one_by_one = filter->one_by_one;
    for (uint32_t g = 0; g < filter->panels_count; g++) {
        vectors = most(vectors, filter->panels[g].vectors);
        one_by_one |= filter->panels[g].partial;
    }
    int64_t elements[FILTER_PIECES] = {
        [FILTER_LINE] = size * filter_columns(filter) * lanes,
        [FILTER_TILES] = size * size * filter->channel_vectors * filter->tiles * lanes,
        [FILTER_PRODUCTS] = vectors * filter->tiles * size * size * lanes,
        [FILTER_STRIP] = filter->rows * results * filter->tile_columns * size * lanes,
        [FILTER_SUMS] = one_by_one ? results * lanes : 0,
        [FILTER_BAND] = filter_band_elements(filter),
    };
    bool several = filter->blocks * filter->conv.images > 1; /* which threads share out */
    for (uint32_t i = 0; i < FILTER_PIECES; i++)
        filter->piece[i] = elements[i] ? recipe_scratch(lower, recipe, name[i], DT_F32, elements[i],
                                                        several || (i != FILTER_TILES && i != FILTER_BAND))
                                       : NONE;
}

static bool plan(Lower *lower, const Kernel *kernel, Filter *filter, Recipe *recipe)
{
    const int64_t *asked = recipe->knob;
    if (!filter_see(lower, kernel, filter) || asked[KNOB_HEIGHT] == 0 || asked[KNOB_PIXELS] == 0 ||
        asked[KNOB_VECTORS] == 0 || !choose(filter, asked))
        return false;
    plan_scratch(lower, filter, recipe);
    return true;
}

static bool winograd_offers(Lower *lower, const Kernel *kernel, Recipe *recipe)
{
    Filter filter;
    if (lower->exact || !plan(lower, kernel, &filter, recipe))
        return false;
    recipe->knob[KNOB_RESULTS] = filter.form.results;
    recipe->knob[KNOB_HEIGHT] = filter.rows;
    recipe->knob[KNOB_PIXELS] = filter.pixels;
    recipe->knob[KNOB_VECTORS] = filter.vectors;
    return true;
}

static double winograd_cost(const Lower *lower, const Kernel *kernel, const Recipe *recipe)
{
    Lower copy = *lower;
    Recipe same = *recipe;
    Filter filter;
    bool offered = plan(&copy, kernel, &filter, &same);
    assert(offered && "what was offered is offered again");
    (void)offered;
    return filter_cost(&filter);
}

static void products(const Filter *filter, Block *block, const FilterPanels *panels)
{
    PointProducts products = {.lower = filter->lower,
                              .lane = filter->lane,
                              .points = (int64_t)filter->form.size * filter->form.size,
                              .depth = filter->conv.channels,
                              .rows = filter->tiles,
                              .row = filter->lanes,
                              .vector = filter->tiles * filter->lanes,
                              .point = filter->channel_vectors * filter->tiles * filter->lanes,
                              .most_rows = filter->pixels,
                              .from = lower_scratch(filter->lower, filter->piece[FILTER_TILES]),
                              .to = lower_scratch(filter->lower, filter->piece[FILTER_PRODUCTS]),
                              .panel = panels->panel,
                              .panels = panels->count,
                              .vectors = panels->vectors,
                              .weights = panels->weights};
    lower_point_products(&products, block);
}

static void emit(Filter *filter)
{
    Lower *lower = filter->lower;
    Block *block = lower->block;
    const Var *loop[] = {filter->image, filter->block};
    for (int i = 0; i < 2; i++)
        if (loop[i]->high > 0)
            block = &stmt_for(lower->arena, block, loop[i], 0, loop[i]->high + 1, 1, LOOP_PARALLEL)->body;
    filter_image(filter, block);
    for (uint32_t g = 0; g < filter->panels_count; g++) {
        const FilterPanels *panels = &filter->panels[g];
        Block *inner = block;
        if (panels->count > 1)
            inner = &stmt_for(lower->arena, block, panels->panel, 0, panels->count, 1, LOOP_PARALLEL)->body;
        products(filter, inner, panels);
        filter_results(filter, inner, panels);
    }
    if (filter->pool)
        filter_pool(filter, block);
}

static void winograd_lower(Lower *lower)
{
    Filter filter;
    Recipe recipe = recipe_to_plan(&lower->kernel->recipe);
    bool offered = plan(lower, lower->kernel, &filter, &recipe);
    assert(offered && "what was offered is offered again");
    (void)offered;
    filter.x = lower_buffer(lower, filter.x_source, false);
    filter.x_base = index_add(lower->arena, filter.x_base, index_constant(-lower->kernel->buffer[filter.x].begin));
    for (uint32_t g = 0; g < filter.panels_count; g++) {
        Packing packing = filter_packing(&filter, &filter.panels[g]);
        filter.panels[g].weights =
            lower_weights(lower, filter.node->in[1], &packing, filter_weight_elements(&filter, &filter.panels[g]));
    }
    emit(&filter);
}

const Provider provider_winograd = {
    .name = "winograd",
    .doc = "fewer products: tiles of 3x3 convolutions by minimal filtering",
    .knob = winograd_knobs,
    .forms = 1u << FORM_CONTRACTION,
    .offers = winograd_offers,
    .cost = winograd_cost,
    .lower = winograd_lower,
};
