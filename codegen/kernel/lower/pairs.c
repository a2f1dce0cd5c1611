/* Contractions by bundles of narrow numbers (pairs.h): tiles, chunks, and the provider's row. */
#include "kernel/lower/pairs.h"

#include <assert.h>

#define MOST_IMAGE (64 << 10) /* bytes of scratch that rows go together in, ... */
#define MOST_TAPS  (32 << 10) /* ... and where taps pass over them: the first level's */
#define SHARE      8          /* of the second level, for the image where weights are far */
#define FAR_SHARE  2          /* of parts, whose weights are four times as much */
#define FEW_CHUNKS 2          /* that threads may share */

/* Of operands in parts, measured on a Sapphire Rapids against register tiles of f32 on it (performance.md). */
#define FAR_BYTES   8 /* from behind the second level in a cycle */
#define ONE_CYCLES  4 /* to bring over one bf16 without vectors, or to finish one sum */
#define PARTS_STEPS 6 /* of products: three take as long as so many would at their best */
#define PARTS_FILL  8 /* cycles to bring over a vector of the image */

/* Tiles */

static int64_t most_pixels(const Pairs *p)
{
    return p->tiles ? PAIRS_TILE_PIXELS : PAIRS_MOST_PIXELS;
}

static int64_t most_vectors(const Pairs *p)
{
    return p->tiles ? 2 : PAIRS_MOST_VECTORS;
}

/* 6 x 2 sums, 2 vectors of weights and a pixel fill 16 registers, 14 x 2 of 32. */
static void choose_tile(Pairs *p, int64_t asked_pixels, int64_t asked_vectors)
{
    int64_t registers = p->lower->target->vector_registers, highest = most_pixels(p),
            vectors = ceil_div(p->columns, p->lanes);
    int64_t pixels = p->flat ? pairs_flat_rows(p) : p->part[0].w.out;
    int64_t wide = least(vectors, asked_vectors > 0 ? asked_vectors : 2);
    if (pixels * wide < 6 && asked_vectors == KNOB_FREE && !p->tiles) /* few pixels: more vectors */
        wide = least(vectors, least(PAIRS_MOST_VECTORS, most(2, 8 / pixels)));
    int64_t tall = p->tiles ? highest : most(1, (registers - 1 - wide) / wide);
    p->pixels = (uint32_t)least(least(pixels, asked_pixels > 0 ? asked_pixels : tall), highest);
    p->vectors = (uint32_t)wide;
}

static void panels(Pairs *p)
{
    PanelSpan span[MOST_SPANS];
    int64_t count = ceil_div(ceil_div(p->columns, p->lanes), p->vectors);
    p->panel_kinds = lower_panel_spans(p->columns, p->lanes, count, span);
    for (uint32_t i = 0; i < p->panel_kinds; i++)
        p->panels[i] =
            (PairsPanels){.span = span[i], .panel = index_var_new(p->lower->arena, "panel", 0, span[i].count - 1)};
}

/* A row of so many columns in tiles of balanced sizes. */
static void cut_row(const Pairs *p, PairsPart *part)
{
    int64_t count = ceil_div(part->width, p->pixels), narrow = part->width / count, wide = part->width % count;
    part->tile_kinds = 0;
    if (wide)
        part->tiles[part->tile_kinds++] = (PairsTiles){0, wide, (uint32_t)narrow + 1};
    part->tiles[part->tile_kinds++] = (PairsTiles){wide * (narrow + 1), count - wide, (uint32_t)narrow};
}

static int64_t span_of(const WindowDimension *d, int64_t results)
{
    return (results - 1) * pairs_step(d) + (d->size - 1) * d->dilation + 1;
}

static int64_t weights_bytes(const Pairs *p, const PairsPart *part)
{
    int64_t elements = p->columns * p->room * part->h.size * part->w.size;
    return p->parts > 1 ? p->parts * elements * dtype_bytes(DT_BF16) : p->bundle == BUNDLE_BYTES ? elements : 0;
}

/* Are the weights more than the second level holds, so that each chunk brings them from behind it? */
static bool has_far_weights(const Pairs *p, const PairsPart *part)
{
    return weights_bytes(p, part) > p->lower->target->l2_bytes;
}

/* Bytes of scratch for the image.  Of parts, three products of which take longer than to load them from there, it is in
 * the second level. */
static int64_t most_image(const Pairs *p, const PairsPart *part)
{
    int64_t second = p->lower->target->l2_bytes;
    if (p->parts > 1)
        return second / (has_far_weights(p, part) ? FAR_SHARE : SHARE);
    return has_far_weights(p, part) ? second / SHARE : part->h.size * part->w.size > 1 ? MOST_TAPS : MOST_IMAGE;
}

/* Rows whose image scratch holds; one where memory is scarce.  Where these are all, threads share the panels. */
static int64_t choose_chunk(const Pairs *p, const PairsPart *part)
{
    int64_t line = part->in_width * p->pitch * dtype_bytes(pairs_dtype(p)) * p->parts;
    int64_t lines = most_image(p, part) / line; /* of scratch */
    int64_t fit = most(1, (lines - span_of(&part->h, 1)) / pairs_step(&part->h) + 1);
    int64_t few = p->parts > 1 && has_far_weights(p, part) ? 1 : least(part->rows, FEW_CHUNKS);
    int64_t chunks = most(ceil_div(part->rows, fit), few);
    return p->lower->lean ? 1 : ceil_div(part->rows, chunks);
}

static void cut_chunks(PairsPart *part, int64_t chunk)
{
    part->chunk = least(chunk, part->rows);
    part->chunks = ceil_div(part->rows, part->chunk);
    part->in_rows = span_of(&part->h, part->chunk);
}

/* A tile is a row of the part, so that whole tiles go together. */
static void cut_flat(Pairs *p)
{
    int64_t rows = pairs_flat_rows(p), tiles = ceil_div(rows, p->pixels);
    int64_t narrow = rows / tiles, wide = rows % tiles, first = 0;
    for (int kind = 0; kind < 2; kind++) {
        int64_t count = kind ? tiles - wide : wide, width = narrow + !kind;
        if (!count)
            continue;
        p->part[p->part_count++] = (PairsPart){.first = first,
                                               .rows = count,
                                               .width = width,
                                               .h = {count, count, 1, 1, 1, 0, 0},
                                               .w = {width, width, 1, 1, 1, 0, 0}};
        first += count * width;
    }
}

static void cut(Pairs *p, int64_t asked)
{
    p->part_count = 0;
    if (p->flat)
        cut_flat(p);
    else {
        p->part[0].rows = p->part[0].h.out, p->part[0].width = p->part[0].w.out;
        p->part_count = 1;
    }
    int64_t chunk = asked;
    for (uint32_t i = 0; i < p->part_count; i++) {
        cut_row(p, &p->part[i]);
        p->part[i].in_width = span_of(&p->part[i].w, p->part[i].width);
        chunk = asked == KNOB_FREE ? most(chunk, choose_chunk(p, &p->part[i])) : asked;
    }
    for (uint32_t i = 0; i < p->part_count; i++)
        cut_chunks(&p->part[i], chunk);
}

static int64_t most_rows(const Pairs *p)
{
    return p->part_count > 1 ? most(p->part[0].rows, p->part[1].rows) : p->part[0].rows;
}

/* The nest */

static Block *add_loop(const Pairs *p, Block *block, const Var *var, LoopKind kind)
{
    int64_t extent = var->high + 1;
    return extent > 1 ? &stmt_for(p->lower->arena, block, var, 0, extent, 1, kind)->body : block;
}

static void tiles_of_row(Pairs *p, Block *block, PairsAt at, uint32_t kind)
{
    Arena *arena = p->lower->arena;
    const PairsTiles *tiles = &at.part->tiles[kind];
    const Var *t = index_var_new(arena, "t", 0, tiles->count - 1);
    Block *inner = add_loop(p, block, t, LOOP_SERIAL);
    at.pixels = tiles->pixels;
    at.w = index_add(arena, index_constant(tiles->first),
                     index_scale(arena, tiles->count > 1 ? index_var(arena, t) : index_constant(0), tiles->pixels));
    pairs_tile(p, inner, &at);
}

/* The tiles of kinds from `kind` to last - 1 of each row */
static void rows_of_chunk(Pairs *p, Block *block, const PairsPart *part, const PairsPanels *panels, Index first,
                          uint32_t kind, uint32_t last)
{
    Arena *arena = p->lower->arena;
    PairsAt at = {.part = part, .panels = panels, .row = first, .line = index_constant(0)};
    if (part->chunk > 1) {
        const Var *row = index_var_new(arena, "row", 0, part->chunk - 1);
        Stmt *rows = stmt_for(arena, block, row, 0, part->chunk, 1, LOOP_SERIAL);
        rows->clamp_high = part->rows % part->chunk != 0;
        rows->high_most = index_add(arena, index_constant(part->rows), index_scale(arena, first, -1));
        at.row = index_add(arena, first, index_var(arena, row));
        at.line = index_scale(arena, index_var(arena, row), pairs_step(&part->h));
        block = &rows->body;
    }
    for (; kind < last; kind++)
        tiles_of_row(p, block, at, kind);
}

static void set_tiles(const Pairs *p, Block *block, const PairsPart *part, const PairsPanels *panels, uint32_t kind)
{
    MatrixProduct shape = pairs_tile_shape(p, part, panels, part->tiles[kind].pixels);
    stmt_tiles(p->lower->arena, block, &shape);
}

/* Tile registers are a thread's own, and shaping them takes as long as some steps of the depth.  Threads share the
 * chunks; where these are one, the panels.  So that is done for each chunk, or within the loop of panels, which stands
 * even for one of them. */
static bool shapes_chunks(const Pairs *p, const PairsPart *part)
{
    return p->tiles && part->chunks > 1 && part->tile_kinds == 1;
}

static Block *panel_loop(const Pairs *p, Block *block, const PairsPart *part, const PairsPanels *panels)
{
    const Var *panel = panels->panel;
    if (p->tiles && part->chunks == 1)
        return &stmt_for(p->lower->arena, block, panel, 0, panel->high + 1, 1, LOOP_SERIAL)->body;
    return add_loop(p, block, panel, LOOP_SERIAL);
}

static void rows_by_tiles(Pairs *p, Block *block, const PairsPart *part, const PairsPanels *panels, Index first)
{
    bool shaped = shapes_chunks(p, part);
    for (uint32_t kind = 0; kind < part->tile_kinds; kind++) {
        if (!shaped)
            set_tiles(p, block, part, panels, kind);
        rows_of_chunk(p, block, part, panels, first, kind, kind + 1);
    }
    if (!shaped)
        stmt_tiles(p->lower->arena, block, NULL);
}

static void panels_of_chunk(Pairs *p, Block *block, const PairsPart *part, Index first)
{
    for (uint32_t i = 0; i < p->panel_kinds; i++) {
        const PairsPanels *panels = &p->panels[i];
        Block *panel = panel_loop(p, block, part, panels);
        if (pairs_starts(p))
            pairs_start(p, panels, panel);
        if (p->tiles)
            rows_by_tiles(p, panel, part, panels, first);
        else
            rows_of_chunk(p, panel, part, panels, first, 0, part->tile_kinds);
    }
}

static void chunks(Pairs *p, Block *block, const PairsPart *part)
{
    Lower *lower = p->lower;
    Arena *arena = lower->arena;
    const Var *chunk = index_var_new(arena, "chunk", 0, part->chunks - 1);
    block = add_loop(p, block, chunk, LOOP_PARALLEL);
    Index first = part->chunks > 1 ? index_scale(arena, index_var(arena, chunk), part->chunk) : index_constant(0);
    Block *outer = lower_enter(lower, block);
    pairs_fill(p, part, first, block);
    lower_leave(lower, outer);
    if (shapes_chunks(p, part))
        set_tiles(p, block, part, &p->panels[0], 0);
    panels_of_chunk(p, block, part, first);
    if (shapes_chunks(p, part))
        stmt_tiles(arena, block, NULL);
}

/* The recipe */

enum { KNOB_PIXELS, KNOB_VECTORS, KNOB_LINES };

static const KnobSpec pairs_knobs[] = {
    {"pixels", PAIRS_MOST_PIXELS,
     "rows of a matrix, or pixels of a row, whose sums a tile keeps in registers, at most"},
    {"vectors", PAIRS_MOST_VECTORS, "vectors of columns of a tile, at most"},
    {"lines", 32, "rows of the result, of a matrix tiles, whose image is brought into scratch together"},
    {NULL, 0, NULL},
};

static void plan_scratch(Lower *lower, Pairs *p, Recipe *recipe)
{
    int64_t image = 0, vectors = 0;
    for (uint32_t i = 0; i < p->part_count; i++)
        image = most(image, p->part[i].in_rows * p->part[i].in_width * p->pitch);
    for (uint32_t i = 0; i < p->panel_kinds; i++)
        if (p->one_by_one || p->tiles || p->panels[i].span.partial)
            vectors = most(vectors, p->panels[i].span.vectors);
    p->image_rest = image + (p->parts > 1 ? PAIRS_APART : 0);
    int64_t sums = p->pixels * vectors * p->lanes;
    int64_t starts = pairs_starts(p) ? p->vectors * p->lanes : 0;
    p->piece[PAIRS_IMAGE] = recipe_scratch(lower, recipe, "image", pairs_dtype(p), p->parts * p->image_rest, true);
    p->piece[PAIRS_SUMS] =
        sums ? recipe_scratch(lower, recipe, "sums", p->tiles ? pairs_sum_dtype(p) : DT_F32, sums, true) : NONE;
    p->piece[PAIRS_STARTS] = starts ? recipe_scratch(lower, recipe, "starts", DT_I32, starts, true) : NONE;
}

static bool plan(Lower *lower, const Kernel *kernel, Pairs *p, Recipe *recipe)
{
    const int64_t *asked = recipe->knob;
    if (asked[KNOB_PIXELS] == 0 || asked[KNOB_VECTORS] == 0 || asked[KNOB_LINES] == 0 ||
        asked[KNOB_PIXELS] > most_pixels(p) || asked[KNOB_VECTORS] > most_vectors(p) || !pairs_see(lower, kernel, p))
        return false;
    choose_tile(p, asked[KNOB_PIXELS], asked[KNOB_VECTORS]);
    panels(p);
    cut(p, asked[KNOB_LINES]);
    plan_scratch(lower, p, recipe);
    return asked[KNOB_PIXELS] <= p->pixels && asked[KNOB_VECTORS] <= p->vectors && asked[KNOB_LINES] <= most_rows(p);
}

static bool pairs_offers(Lower *lower, const Kernel *kernel, Recipe *recipe)
{
    Pairs p = {.tiles = recipe->provider == &provider_amx};
    if (!plan(lower, kernel, &p, recipe))
        return false;
    recipe->knob[KNOB_PIXELS] = p.pixels;
    recipe->knob[KNOB_VECTORS] = p.vectors;
    recipe->knob[KNOB_LINES] = most(p.part[0].chunk, p.part_count > 1 ? p.part[1].chunk : 0);
    return true;
}

/* A product of tiles takes a cycle for each row, a load of one eight. */
static double tile_cycles(const Pairs *p, double flops)
{
    double rows = p->pixels, vectors = p->vectors, loads = 8 * (vectors + (rows > 16 ? 2 : 1));
    double step = 2 * rows * vectors * (double)(p->lanes * p->words * bundle_count(p->bundle));
    double results = (double)shape_elements(value_shape(p->lower->graph, p->node->out[0]));
    double steps = flops / step * (p->parts > 1 ? PARTS_STEPS : 1);
    return steps * (rows * vectors > loads ? rows * vectors : loads) + results / (double)p->lanes * 3;
}

/* What vectors do not do, of parts: to bring over an image that is not in blocks, to store a part of a vector. */
static double single_cycles(const Pairs *p, double image)
{
    double results = 0, all = (double)shape_elements(value_shape(p->lower->graph, p->node->out[0]));
    for (uint32_t i = 0; i < p->panel_kinds; i++) {
        const PanelSpan *span = &p->panels[i].span;
        int64_t columns = least(p->columns - span->first * p->lanes, span->count * span->vectors * p->lanes);
        if (span->partial || p->one_by_one)
            results += all * (double)columns / (double)p->columns;
    }
    return p->parts == 1 ? 0 : ONE_CYCLES * (results + (pairs_fills_singly(p) ? p->parts * image : 0));
}

/* Of parts: what they read of weights beyond the 4 bytes of each, once, that other recipes read. */
static double far_cycles(const Pairs *p)
{
    const PairsPart *part = &p->part[0];
    if (p->parts == 1 || !p->part_count)
        return 0;
    double bytes = -4 * (double)(p->columns * p->room * part->h.size * part->w.size);
    for (uint32_t i = 0; i < p->part_count; i++)
        bytes += (double)((has_far_weights(p, &part[i]) ? part[i].chunks : !i) * weights_bytes(p, &part[i]));
    return bytes / FAR_BYTES;
}

/* Twice the products of f32 an instruction, nearly, of quads four times, and the image once for each chunk.  bf16 needs
 * no widening. */
static double pairs_cost(const Lower *lower, const Kernel *kernel, const Recipe *recipe)
{
    const Node *node = &lower->graph->node[kernel->anchor];
    Lower copy = *lower;
    Recipe same = recipe_to_plan(recipe);
    Pairs p = {.tiles = recipe->provider == &provider_amx};
    bool offered = plan(&copy, kernel, &p, &same);
    assert(offered && "what was offered is offered again");
    (void)offered;
    double lanes = (double)p.lanes, columns = (double)ceil_div(p.columns, p.lanes) * lanes, image = 0;
    for (uint32_t i = 0; i < p.part_count; i++)
        image += (double)(p.part[i].chunks * p.part[i].in_rows * p.part[i].in_width * p.room);
    image *= (double)(p.conv.images * p.conv.groups);
    double flops =
        (double)node_flops(lower->graph, node) * columns / (double)p.columns * (double)p.room / (double)p.depth;
    if (p.tiles)
        return tile_cycles(&p, flops) + image * (p.parts > 1 ? PARTS_FILL : 2) / lanes + far_cycles(&p) +
               single_cycles(&p, image);
    double faster = p.bundle == BUNDLE_BYTES ? 14 : p.bundle == BUNDLE_BF16 ? 6 : 7;
    return flops / (faster * lanes) + image * 2 / lanes;
}

static void pairs_lower(Lower *lower)
{
    Recipe recipe = recipe_to_plan(&lower->kernel->recipe);
    Pairs p = {.tiles = recipe.provider == &provider_amx};
    bool offered = plan(lower, lower->kernel, &p, &recipe);
    assert(offered && "what was offered is offered again");
    (void)offered;
    Block *block = add_loop(&p, lower->block, p.image, LOOP_SERIAL);
    block = add_loop(&p, block, p.group, LOOP_SERIAL);
    Block *outer = lower_enter(lower, block);
    pairs_pack(&p);
    for (uint32_t i = 0; i < p.part_count; i++)
        chunks(&p, block, &p.part[i]);
    lower_leave(lower, outer);
}

const Provider provider_pairs = {
    .name = "pairs",
    .doc = "narrow numbers in pairs or quads; sums of integers are exact in 32 bits",
    .knob = pairs_knobs,
    .forms = 1u << FORM_CONTRACTION,
    .offers = pairs_offers,
    .cost = pairs_cost,
    .lower = pairs_lower,
};

static const KnobSpec amx_knobs[] = {
    {"pixels", PAIRS_TILE_PIXELS, "rows of a matrix, or pixels of a row, of two tile registers, at most"},
    {"vectors", 2, "vectors of columns, each of a tile register, at most"},
    {"lines", 32, "rows of the result, of a matrix tiles, whose image is brought into scratch together"},
    {NULL, 0, NULL},
};

const Provider provider_amx = {
    .name = "amx",
    .doc = "bytes, bf16 and, with --precision high, f32 in tile registers (AMX); sums of integers are exact",
    .knob = amx_knobs,
    .forms = 1u << FORM_CONTRACTION,
    .offers = pairs_offers,
    .cost = pairs_cost,
    .lower = pairs_lower,
};
