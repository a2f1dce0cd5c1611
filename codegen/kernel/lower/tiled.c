/* Contractions by the register-tiled micro-kernel: the order of loops, and the provider's row.
 * Takes f32 operands and results, at least a vector of columns, a first operand in memory whose address is
 * affine in the pixel and in the depth within a block. */
#include "kernel/lower/strip.h"
#include "kernel/lower/tiled.h"

#include <assert.h>
#include <math.h>

/* The nest */

static Block *add_loop(Tiled *con, Block *block, const Var *var, int64_t extent, LoopKind kind)
{
    return extent > 1 ? &stmt_for(con->lower->arena, block, var, 0, extent, 1, kind)->body : block;
}

/* The panels of a group.  Where threads share the kernel, and have the rounds of other loops to share, one panel stands
 * in a loop, too: what it packs is then of the thread that has it, and its tile is not at the top. */
static Block *panel_loop(Tiled *con, Block *block, const PanelGroup *group, bool shares, LoopKind kind)
{
    bool alone = shares && con->lower->kernel->parts > 1;
    return alone ? &stmt_for(con->lower->arena, block, group->panel, 0, group->count, 1, kind)->body
                 : add_loop(con, block, group->panel, group->count, kind);
}

static bool has_panels(const Tiled *con)
{
    bool some = false;
    for (uint32_t g = 0; g < con->group_count; g++)
        some |= con->group[g].count > 1;
    return some;
}

/* The tile of a loop at round `round`, in the row when tiles stay in rows. */
static void tile(Tiled *con, Block *block, const TileLoop *loop, const PanelGroup *group, Index round, const Var *row)
{
    Arena *arena = con->lower->arena;
    TileAt at = {.loop = loop, .round = round, .group = group, .row = row};
    at.pixel = index_add(arena, index_constant(loop->first.pixel), index_scale(arena, round, loop->step.pixel));
    at.column = at.pixel;
    at.x = index_add(arena, index_constant(loop->first.x), index_scale(arena, round, loop->step.x));
    at.tile = index_add(arena, index_constant(loop->first.tile), index_scale(arena, round, loop->step.tile));
    if (row) {
        Index r = index_var(arena, row);
        at.pixel = index_add(arena, at.pixel, index_scale(arena, r, con->out_w));
        at.x = index_add(arena, at.x, index_scale(arena, r, con->stride_h * con->x_h));
        at.tile = index_add(arena, at.tile, index_scale(arena, r, con->tiling.tiles));
    }
    tiled_tile(con, block, &at);
}

static void all_tiles(Tiled *con, Block *block, const PanelGroup *group, const Var *row)
{
    for (uint32_t i = 0; i < con->tiling.count; i++) {
        const TileLoop *loop = &con->tiling.loop[i];
        const Var *t = index_var_new(con->lower->arena, "t", 0, loop->count - 1);
        Block *inner = add_loop(con, block, t, loop->count, LOOP_SERIAL);
        tile(con, inner, loop, group, index_var(con->lower->arena, t), row);
    }
}

static const Var *row_loop(Tiled *con, Block **block, LoopKind kind)
{
    if (!con->tiling.rows)
        return NULL;
    const Var *row = index_var_new(con->lower->arena, "row", 0, con->out_h - 1);
    *block = add_loop(con, *block, row, con->out_h, kind);
    return row;
}

static Block *panels_together(Tiled *con, Block *block, const PanelGroup *group)
{
    Arena *arena = con->lower->arena;
    Stmt *panels = stmt_for(arena, block, group->panel, 0, group->count, 1, LOOP_SERIAL);
    panels->low = con->first_panel;
    panels->high = index_add(arena, panels->low, index_constant(con->together));
    panels->clamp_high = group->count % con->together != 0;
    panels->high_most = index_constant(group->count);
    return &panels->body;
}

/* All of them over a tile's rows, so that what a row of the result takes is near until it is whole. */
static void panels_along_rows(Tiled *con, Block *block, const PanelGroup *group)
{
    for (uint32_t i = 0; i < con->tiling.count; i++) {
        const TileLoop *loop = &con->tiling.loop[i];
        const Var *t = index_var_new(con->lower->arena, "t", 0, loop->count - 1);
        Block *inner = panels_together(con, add_loop(con, block, t, loop->count, LOOP_SERIAL), group);
        tile(con, inner, loop, group, index_var(con->lower->arena, t), NULL);
    }
}

/* Some panels together, by rounds, for which a share of the first operand may be brought over. */
static void panels_by_rounds(Tiled *con, Block *block, PanelGroup *group)
{
    Lower *lower = con->lower;
    Arena *arena = lower->arena;
    int64_t parts = ceil_div(group->count, con->together);
    const Var *part = index_var_new(arena, "part", 0, parts - 1);
    con->first_panel = index_scale(arena, index_var(arena, part), con->together);
    block = add_loop(con, block, part, parts, LOOP_PARALLEL);
    block = add_loop(con, block, con->round, con->rounds, LOOP_SERIAL);
    Block *outer = lower_enter(lower, block);
    if (con->transposes)
        tiled_transpose(con);
    lower_leave(lower, outer);

    if (tiled_goes_along_rows(con))
        tiled_set_packed(con, group, group->weight.buffer, 0);
    Block *panels = panels_together(con, block, group);
    outer = lower_enter(lower, panels);
    tiled_pack_panel(con, group);
    lower_leave(lower, outer);
    if (tiled_goes_along_rows(con))
        panels_along_rows(con, block, group);
    else
        all_tiles(con, panels, group, NULL);
}

static void panels_outside(Tiled *con, Block *block)
{
    for (uint32_t g = 0; g < con->group_count; g++) {
        PanelGroup *group = &con->group[g];
        if (con->together) {
            panels_by_rounds(con, block, group);
            continue;
        }
        Block *inner = panel_loop(con, block, group, has_panels(con), LOOP_PARALLEL);
        if (!group->partial)
            inner = add_loop(con, inner, con->round, con->rounds, LOOP_SERIAL);
        Block *outer = lower_enter(con->lower, inner);
        tiled_pack_panel(con, group);
        lower_leave(con->lower, outer);
        if (tiled_packs_once(con))
            inner = add_loop(con, inner, con->outer[0], con->outer[0]->high + 1, LOOP_SERIAL);
        const Var *row = row_loop(con, &inner, LOOP_SERIAL);
        all_tiles(con, inner, group, row);
    }
}

static void panels_of_row(Tiled *con, Block *block, const Var *row)
{
    for (uint32_t g = 0; g < con->group_count; g++) {
        Block *inner = add_loop(con, block, con->group[g].panel, con->group[g].count, LOOP_SERIAL);
        all_tiles(con, inner, &con->group[g], row);
    }
}

static void line_and_panels(Tiled *con, Block *block, const Var *row)
{
    tiled_line(con, block, row);
    panels_of_row(con, block, row);
}

static void chunks_of_row(Tiled *con, Block *block)
{
    const Var *row = row_loop(con, &block, con->computed ? LOOP_SERIAL : LOOP_PARALLEL);
    if (con->computed)
        line_and_panels(con, block, row);
    else
        panels_of_row(con, block, row);
}

/* The rows of one pooling window at a time: into the band, and out of it. */
static void pooled_rows(Tiled *con, Block *block)
{
    Lower *lower = con->lower;
    Arena *arena = lower->arena;
    const Var *pooled = index_var_new(arena, "pooled", 0, value_shape(lower->graph, con->pool->out[0])->dim[2] - 1);
    block = add_loop(con, block, pooled, pooled->high + 1, LOOP_SERIAL);
    lower->band = (Band){.value = con->pool->in[0],
                         .buffer = lower_scratch(lower, con->piece[PIECE_BAND]),
                         .first = index_scale(arena, index_var(arena, pooled), con->pool_stride)};
    const Var *row = index_var_new(arena, "row", 0, con->out_h - 1);
    Stmt *rows = stmt_for(arena, block, row, 0, con->out_h, 1, LOOP_SERIAL);
    rows->low = lower->band.first;
    rows->high = index_add(arena, rows->low, index_constant(con->pool_window));
    if (con->computed)
        line_and_panels(con, &rows->body, row);
    else
        panels_of_row(con, &rows->body, row);

    Block *outer = lower_enter(lower, block);
    lower->band.filled = true;
    lower_window_row(lower, con->pool, con->position[0], index_var(arena, pooled));
    lower->band.filled = false;
    lower_leave(lower, outer);
}

static void chunks_of_image(Tiled *con, Block *block)
{
    Arena *arena = con->lower->arena;
    for (uint32_t i = 0; i < con->tiling.count; i++) {
        const TileLoop *loop = &con->tiling.loop[i];
        int64_t chunk_tiles = least(con->chunk, loop->count), chunks = ceil_div(loop->count, chunk_tiles);
        const Var *chunk = index_var_new(arena, "chunk", 0, chunks - 1),
                  *t = index_var_new(arena, "t", 0, loop->count - 1);
        Block *outside = add_loop(con, block, chunk, chunks, LOOP_PARALLEL);
        for (uint32_t g = 0; g < con->group_count; g++) {
            Block *inner = panel_loop(con, outside, &con->group[g], chunks == 1 && has_panels(con), LOOP_SERIAL);
            Index round = index_var(arena, chunk);
            if (chunk_tiles > 1) {
                Stmt *tiles = stmt_for(arena, inner, t, 0, loop->count, 1, LOOP_SERIAL);
                tiles->low = index_scale(arena, round, chunk_tiles);
                tiles->high = index_add(arena, tiles->low, index_constant(chunk_tiles));
                tiles->clamp_high = chunks > 1; /* also of whole chunks: so kernels of both kinds share their text */
                tiles->high_most = index_constant(loop->count);
                inner = &tiles->body;
                round = index_var(arena, t);
            }
            tile(con, inner, loop, &con->group[g], round, NULL);
        }
    }
}

static void emit(Tiled *con)
{
    Block *block = con->lower->block;
    bool once = tiled_packs_once(con); /* images, the outermost loop, come behind the packing */
    for (uint32_t d = once; d < con->outer_count; d++)
        block = add_loop(con, block, con->outer[d], con->outer[d]->high + 1, LOOP_SERIAL);
    Block *outer = lower_enter(con->lower, block);
    tiled_weights(con);
    if (once && con->order == ORDER_CHUNKS)
        block = add_loop(con, block, con->outer[0], con->outer[0]->high + 1, LOOP_SERIAL);
    if (con->pool)
        pooled_rows(con, block);
    else if (con->order == ORDER_PANELS)
        panels_outside(con, block);
    else if (con->tiling.rows)
        chunks_of_row(con, block);
    else
        chunks_of_image(con, block);
    lower_leave(con->lower, outer);
}

/* The recipe */

#define MOST_WRITTEN_OUT 119 /* words of a tile's epilogue */
#define LEAST_STEPS      64  /* of a tile, beside which the way through scratch costs nothing */

enum { KNOB_PIXELS, KNOB_VECTORS, KNOB_CHUNK, KNOB_ROUNDS, KNOB_ROWS, KNOB_TRANSPOSES };

static const KnobSpec tiled_knobs[] = {
    {"pixels", 16, "rows of a matrix, or pixels, whose sums a tile keeps in registers, at most"},
    {"vectors", 8, "vectors of columns of a tile, at most"},
    {"chunk", 32, "tiles that pass over all panels of the weights; without it all tiles pass over a panel"},
    {"rounds", 16, "blocks of the depth; between two the result's memory, or scratch, holds partial sums"},
    {"rows", 1, "tiles end where rows of the image do"},
    {"transposes", 1, "a transposed first operand is brought into scratch by rounds, for many panels"},
    {NULL, 0, NULL},
};

static int64_t spilled_sums(const Tiled *con)
{
    uint32_t vectors = 0;
    bool partial = con->rounds > 1; /* sums of all rounds lie elsewhere */
    for (uint32_t g = 0; g < con->group_count; g++)
        if ((con->one_by_one || (con->rolled && !partial) || con->group[g].partial) && con->group[g].vectors > vectors)
            vectors = con->group[g].vectors;
    return (int64_t)con->pixels * vectors * con->lanes;
}

/* Would the text of what is done with a tile's sums outgrow that of the sums?  Written out, it also spills them: a loop
 * is faster where it is long, too. */
static bool rolls(const Tiled *con)
{
    int64_t sums = (int64_t)con->pixels * con->vectors, steps = con->depth * con->taps_h * con->taps_w;
    return !con->one_by_one && !con->pool && steps >= LEAST_STEPS &&
           tiled_words_beside(con->lower) * sums > MOST_WRITTEN_OUT;
}

/* The tiles of a phase as the recipe says, or, where it says nothing, good ones. */
static bool plan_phase(Lower *lower, Tiled *con, uint32_t phase, const TiledKnobs *asked)
{
    if (!tiled_see(lower, con, phase))
        return false;
    con->asked = *asked;
    if (!tiled_choose(con))
        return false;
    tiled_panels(con);
    con->rolled = rolls(con);
    if (!con->transposes)
        con->round = index_var_new(lower->arena, "round", 0, con->rounds - 1);
    return true;
}

static TiledKnobs knobs_of(const Tiled *con)
{
    return (TiledKnobs){.pixels = con->pixels,
                        .vectors = con->vectors,
                        .chunk = con->order == ORDER_CHUNKS ? con->chunk : 0,
                        .rounds = con->rounds > 1 ? con->rounds : most(0, con->asked.rounds),
                        .rows = con->tiling.rows,
                        .transposes = con->transposes};
}

/* Are panels packed inside a loop that threads may share?  Then each has its own. */
static bool packs_inside_loops(const Tiled *con)
{
    const Strip *strip = con->lower->strip;
    for (uint32_t d = 0; strip && d < strip->product.batch_rank; d++)
        if (strip->loop[d]->high > 0)
            return true;
    for (uint32_t d = tiled_packs_once(con); !strip && d < con->outer_count; d++)
        if (con->outer[d]->high > 0)
            return true;
    return tiled_packs_panels(con);
}

/* The largest of each piece that a phase takes. */
static void plan_scratch(Lower *lower, Tiled *con, Recipe *recipe)
{
    int64_t elements[PIECES] = {0};
    for (uint32_t i = 0; i < con->phases; i++) {
        elements[PIECE_LINE] = con[i].computed ? tiled_line_elements(&con[i]) : 0;
        elements[PIECE_ROWS] = most(elements[PIECE_ROWS], tiled_transposed_elements(&con[i]));
        elements[PIECE_BAND] = con[i].pool ? con[i].pool_window * con[i].out_w * con[i].columns : 0;
        elements[PIECE_PANELS] = most(elements[PIECE_PANELS], tiled_packed_elements(&con[i]));
        elements[PIECE_PARTIAL] = most(elements[PIECE_PARTIAL], tiled_partial_elements(&con[i]));
        elements[PIECE_SUMS] = most(elements[PIECE_SUMS], spilled_sums(&con[i]));
    }
    for (uint32_t p = 0; p < PIECES; p++) {
        static const char *const name[PIECES] = {"line", "rows", "band", "panels", "partial", "sums"};
        bool per_thread = p != PIECE_PANELS || packs_inside_loops(con);
        uint32_t piece = elements[p] ? recipe_scratch(lower, recipe, name[p], DT_F32, elements[p], per_thread) : NONE;
        if (piece != NONE)
            recipe->scratch[piece].carries = p == PIECE_PARTIAL; /* from round to round of the depth */
        for (uint32_t i = 0; i < con->phases; i++)
            con[i].piece[p] = piece;
    }
}

/* One of each phase, all with the knobs that the first one takes; NULL when tiles do not take the kernel. */
static Tiled *plan(Lower *lower, Recipe *recipe)
{
    Tiled first;
    TiledKnobs asked = {recipe->knob[KNOB_PIXELS], recipe->knob[KNOB_VECTORS], recipe->knob[KNOB_CHUNK],
                        recipe->knob[KNOB_ROUNDS], recipe->knob[KNOB_ROWS],    recipe->knob[KNOB_TRANSPOSES]};
    if (!plan_phase(lower, &first, 0, &asked))
        return NULL;
    Tiled *con = ARENA_ARRAY(lower->arena, Tiled, first.phases);
    con[0] = first;
    asked = knobs_of(&first);
    for (uint32_t i = 1; i < first.phases; i++)
        if (!plan_phase(lower, &con[i], i, &asked))
            return NULL;
    plan_scratch(lower, con, recipe);
    return con;
}

static bool tiled_offers(Lower *lower, const Kernel *kernel, Recipe *recipe)
{
    (void)kernel;
    const Tiled *con = plan(lower, recipe);
    if (!con)
        return false;
    TiledKnobs knobs = knobs_of(con);
    recipe->knob[KNOB_PIXELS] = knobs.pixels;
    recipe->knob[KNOB_VECTORS] = knobs.vectors;
    recipe->knob[KNOB_CHUNK] = knobs.chunk;
    recipe->knob[KNOB_ROUNDS] = knobs.rounds;
    recipe->knob[KNOB_ROWS] = knobs.rows;
    recipe->knob[KNOB_TRANSPOSES] = knobs.transposes;
    recipe->rewrites = con->rounds > 1 && con->packed; /* partial sums */
    return true;
}

/* The share of a dimension's taps that lie inside the image. */
static double share_inside(const WindowDimension *d)
{
    int64_t inside = 0;
    for (int64_t tap = 0; tap < d->size; tap++) {
        int64_t shift = d->before - tap * d->dilation, begin = ceil_div(most(0, shift), d->stride);
        int64_t room = d->in - 1 + shift, end = room < 0 ? 0 : room / d->stride + 1;
        inside += most(0, least(end, d->out) - begin);
    }
    return (double)inside / (double)most(1, d->size * d->out);
}

/* Taps on padding are left out. */
static double skip_padding(const Graph *graph, const Node *node, double flops)
{
    Convolution conv;
    if (convolution_of(graph, node, &conv))
        for (uint32_t d = 0; d < conv.window.rank; d++)
            flops *= share_inside(&conv.window.dim[d]);
    return flops;
}

#define SCATTERED 3 /* cycles of a result that no vector stores */

/* Results of a window over an image that does not lie in blocks: neighbouring columns, the channels, are far apart. */
static double scattered_results(const Graph *graph, const Node *node)
{
    const Type *type = value_type(graph, node->out[0]);
    int64_t taps = 1;
    if (type->layout.block || !convolution_phase_count(graph, node))
        return 0;
    Window window = convolution_phase_of(graph, node, 0).conv.window;
    for (uint32_t d = 0; d < window.rank; d++)
        taps *= window.dim[d].size;
    return taps > 1 ? (double)shape_elements(&type->shape) : 0;
}

#define STALL 20 /* cycles until a vector can be loaded of elements that have just been stored */

/* Of a batch of products whose columns fill no vector, and come to the panel one by one, once for each product. */
static double short_panels(const Lower *lower, const Node *node)
{
    Product product;
    Tiled con;
    Lower copy = *lower;
    const Shape *second = value_shape(lower->graph, node->in[1]);
    if (second->rank < 3 || !product_of(lower->graph, node, &product) ||
        product.columns % tiled_lanes(lower->target, &product) == 0 || !tiled_see(&copy, &con, 0) || con.packed ||
        con.columns >= con.lanes)
        return 0;
    return STALL * (double)shape_elements(second) / (double)most(1, product.columns);
}

/* Vectors of sums at once, some of whose lanes may be past the last column. */
static double tiled_cost(const Lower *lower, const Kernel *kernel, const Recipe *recipe)
{
    const Node *node = &lower->graph->node[kernel->anchor];
    double flops = skip_padding(lower->graph, node, (double)node_flops(lower->graph, node));
    int64_t lanes = lower->target->lanes;
    (void)recipe;
    if (convolution_phase_count(lower->graph, node)) {
        int64_t columns = value_shape(lower->graph, node->out[0])->dim[1];
        ConvolutionPhase phase = convolution_phase_of(lower->graph, node, 0);
        lanes = tiled_window_lanes(lower, &phase.conv);
        double joined = (double)convolution_joined_groups(&phase.conv, lanes);
        if (joined > 1 && lower->target->small) /* each with zeros for the others' weights */
            return INFINITY;
        columns = columns / phase.conv.groups * (int64_t)joined;
        flops *= joined * (double)(ceil_div(columns, lanes) * lanes) / (double)columns;
    }
    return flops / (4 * (double)lanes) + SCATTERED * scattered_results(lower->graph, node) + short_panels(lower, node);
}

static void take_operand(Tiled *con)
{
    Lower *lower = con->lower;
    con->x = lower_buffer(lower, con->x_source, false);
    con->x_base = index_add(lower->arena, con->x_base, index_constant(-lower->kernel->buffer[con->x].begin));
}

static void lower_phase(Lower *lower, Tiled *con)
{
    if (con->computed)
        con->x = lower_scratch(lower, con->piece[PIECE_LINE]);
    else if (con->transposes)
        con->x = lower_scratch(lower, con->piece[PIECE_ROWS]);
    else
        take_operand(con);
    emit(con);
}

/* Strips */

Tiled *tiled_plan_strip(Lower *lower, Recipe *recipe)
{
    Recipe own = recipe_free(&provider_tiled);
    own.scratch = recipe->scratch;
    own.scratch_count = recipe->scratch_count;
    own.scratch_capacity = recipe->scratch_capacity;
    Tiled *con = plan(lower, &own);
    recipe->scratch = own.scratch;
    recipe->scratch_count = own.scratch_count;
    recipe->scratch_capacity = own.scratch_capacity;
    return con;
}

void tiled_pack_strips(Tiled *con)
{
    if (con->takes_strip)
        con->x = con->lower->strip->buffer;
    else
        take_operand(con);
    tiled_weights(con);
}

void tiled_lower_strip(Tiled *con)
{
    panels_outside(con, con->lower->block);
}

static void tiled_lower(Lower *lower)
{
    Recipe recipe = recipe_to_plan(&lower->kernel->recipe);
    Tiled *con = plan(lower, &recipe);
    assert(con && "what was offered is offered again");
    for (uint32_t i = 0; i < con->phases; i++)
        lower_phase(lower, &con[i]);
}

const Provider provider_tiled = {
    .name = "tiled",
    .doc = "a tile of sums in registers, operands packed for it",
    .knob = tiled_knobs,
    .forms = 1u << FORM_CONTRACTION,
    .offers = tiled_offers,
    .cost = tiled_cost,
    .lower = tiled_lower,
};
