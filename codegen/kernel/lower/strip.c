/* Strips (strip.h): the loops around the parts, and the recipe. */
#include "kernel/lower/strip.h"

#include "base/number.h"

#include <assert.h>

enum { KNOB_ROWS };

static const KnobSpec strip_knobs[] = {
    {"rows", 64, "rows of a strip, between the two products"},
    {NULL, 0, NULL},
};

typedef struct Strips {
    Strip strip;
    Kernel part[STRIP_SECOND + 1];
    Tiled *first, *second;
} Strips;

/* The parts */

static Kernel part_of(const Lower *lower, const Kernel *kernel, uint8_t number)
{
    const Graph *graph = lower->graph;
    Kernel part = *kernel;
    part.node = ARENA_ARRAY(lower->arena, NodeId, kernel->node_count);
    part.node_count = 0;
    part.anchor = NONE;
    part.form = number == STRIP_ROWS ? FORM_ROWS : FORM_CONTRACTION;
    part.threads = part.parts = 0;
    for (uint32_t n = 0; n < kernel->node_count; n++) {
        const Node *node = &graph->node[kernel->node[n]];
        if (node->part != number)
            continue;
        part.node[part.node_count++] = kernel->node[n];
        if (node_is_contraction(graph, node))
            part.anchor = kernel->node[n];
    }
    return part;
}

static void enter(Lower *lower, Strips *strips, uint8_t number)
{
    Kernel *part = &strips->part[number];
    part->buffer = lower->kernel->buffer;
    part->buffer_count = lower->kernel->buffer_count;
    part->buffer_capacity = lower->kernel->buffer_capacity;
    lower->kernel = part;
    lower->part = number;
}

/* The buffers that the part has asked for are the kernel's. */
static void leave(Lower *lower, Kernel *kernel)
{
    kernel->buffer = lower->kernel->buffer;
    kernel->buffer_count = lower->kernel->buffer_count;
    kernel->buffer_capacity = lower->kernel->buffer_capacity;
    lower->kernel = kernel;
    lower->part = 0;
}

/* Planning */

static ValueId value_between(const Lower *lower, const Kernel *part)
{
    for (uint32_t n = 0; n < part->node_count; n++) {
        const Node *node = &lower->graph->node[part->node[n]];
        for (uint32_t r = 0; r < node->out_count; r++)
            if (kernel_stores(lower, node->out[r]))
                return node->out[r];
    }
    return NONE;
}

static void see_strip(Lower *lower, Strips *strips, int64_t rows_asked)
{
    Strip *strip = &strips->strip;
    const Graph *graph = lower->graph;
    const Node *first = &graph->node[strips->part[STRIP_FIRST].anchor],
               *second = &graph->node[strips->part[STRIP_SECOND].anchor];
    product_of(graph, first, &strip->product);
    strip->taken = second->in[0];
    const Shape *shape = value_shape(graph, first->out[0]);
    int64_t matrices = 1;
    for (uint32_t d = 0; d < strip->product.batch_rank; d++) {
        strip->loop[d] = index_var_new(lower->arena, lower_loop_names[d], 0, shape->dim[d] - 1);
        matrices *= shape->dim[d];
    }
    int64_t rows = strip->product.rows;
    strip->height = rows_asked != KNOB_FREE ? least(rows, rows_asked)
                                            : strip_height(lower->target, rows, strip->product.columns, matrices == 1);
    strip->row = index_var_new(lower->arena, "top", 0, (ceil_div(rows, strip->height) - 1) * strip->height);
    strip->first = index_var(lower->arena, strip->row);
    if (rows % strip->height) {
        strip->begin = lower_local(lower, "begin", DT_I64, false);
        strip->first = index_data(lower->arena, expr_local(lower->arena, strip->begin), 0, rows - strip->height);
    }
    bool pages = strip->product.columns * 4 % PAGE_BYTES == 0; /* rows that would share a set of the first level */
    strip->apart = strip->product.columns + (pages ? LINE_BYTES / 4 : 0);
}

/* What the parts are, and the scratch that they take; false where one of them cannot be. */
static bool plan(Lower *lower, const Kernel *kernel, Recipe *recipe, Strips *strips)
{
    Kernel *whole = lower->kernel;
    for (uint8_t p = STRIP_FIRST; p <= STRIP_SECOND; p++)
        strips->part[p] = part_of(lower, kernel, p);
    see_strip(lower, strips, recipe->knob[KNOB_ROWS]);
    if (strips->strip.height <= 0)
        return false;

    enter(lower, strips, STRIP_FIRST);
    strips->strip.made = value_between(lower, lower->kernel);
    lower->strip = &strips->strip;
    enter(lower, strips, STRIP_ROWS);
    if (lower->kernel->node_count)
        strip_plan_rows(lower, recipe);
    strips->strip.piece =
        recipe_scratch(lower, recipe, "strip", DT_F32, strips->strip.height * strips->strip.apart, true);
    enter(lower, strips, STRIP_FIRST);
    strips->first = tiled_plan_strip(lower, recipe);
    enter(lower, strips, STRIP_SECOND);
    strips->second = tiled_plan_strip(lower, recipe);
    leave(lower, whole);
    lower->strip = NULL;
    return strips->first && strips->second;
}

static bool strips_offers(Lower *lower, const Kernel *kernel, Recipe *recipe)
{
    Strips strips = {0};
    if (recipe->knob[KNOB_ROWS] == 0 || !plan(lower, kernel, recipe, &strips))
        return false;
    recipe->knob[KNOB_ROWS] = strips.strip.height;
    recipe->rewrites = strips.strip.product.rows % strips.strip.height != 0; /* where the last strip overlaps */
    return true;
}

static double strips_cost(const Lower *lower, const Kernel *kernel, const Recipe *recipe)
{
    double flops = 0;
    (void)recipe;
    for (uint32_t n = 0; n < kernel->node_count; n++)
        flops += (double)node_flops(lower->graph, &lower->graph->node[kernel->node[n]]);
    return flops / (4 * lower->target->lanes);
}

/* The loops */

static Block *loops_over_matrices(Lower *lower, const Strip *strip)
{
    Block *block = lower->block;
    for (uint32_t d = 0; d < strip->product.batch_rank; d++)
        if (strip->loop[d]->high > 0)
            block = &stmt_for(lower->arena, block, strip->loop[d], 0, strip->loop[d]->high + 1, 1, LOOP_SERIAL)->body;
    return block;
}

static Block *loop_over_strips(Lower *lower, const Strip *strip)
{
    Arena *arena = lower->arena;
    int64_t rows = strip->product.rows;
    if (rows <= strip->height)
        return lower->block;
    Block *block = &stmt_for(arena, lower->block, strip->row, 0, rows, strip->height, LOOP_SERIAL)->body;
    if (!strip->begin)
        return block;
    const Expr *even = expr_index(arena, DT_I64, index_var(arena, strip->row)),
               *last = expr_number(arena, DT_I64, (double)(rows - strip->height));
    stmt_local(arena, block, strip->begin, expr_word(arena, WORD_MIN, DT_I64, even, last, NULL));
    return block;
}

static void strips_lower(Lower *lower)
{
    Strips strips = {0};
    Kernel *whole = lower->kernel;
    Recipe recipe = recipe_to_plan(&whole->recipe);
    bool good = plan(lower, whole, &recipe, &strips);
    assert(good && "what was offered is offered again");
    (void)good;
    lower->strip = &strips.strip;
    strips.strip.buffer = lower_scratch(lower, strips.strip.piece);

    Block *outside = lower_enter(lower, loops_over_matrices(lower, &strips.strip));
    enter(lower, &strips, STRIP_FIRST);
    tiled_pack_strips(strips.first);
    enter(lower, &strips, STRIP_SECOND);
    tiled_pack_strips(strips.second);
    StripBody body = {.block = loop_over_strips(lower, &strips.strip)};
    lower_enter(lower, body.block);
    body.before = body.block->last;
    enter(lower, &strips, STRIP_FIRST);
    tiled_lower_strip(strips.first);
    Stmt *end_of_first = body.block->last;
    enter(lower, &strips, STRIP_ROWS);
    if (lower->kernel->node_count)
        strip_lower_rows(lower);
    Stmt *end_of_rows = body.block->last;
    enter(lower, &strips, STRIP_SECOND);
    tiled_lower_strip(strips.second);
    leave(lower, whole);
    body.first = body.before ? body.before->next : body.block->first;
    body.rows = end_of_first->next;
    body.second = end_of_rows->next;
    strip_leave_hidden(lower, &strips.strip, &strips.part[STRIP_FIRST], &strips.part[STRIP_ROWS], body);
    lower_leave(lower, outside);
    lower->strip = NULL;
}

const Provider provider_strips = {
    .name = "strips",
    .doc = "two products, some rows of the first at a time, and what is made of them",
    .knob = strip_knobs,
    .forms = 1u << FORM_STRIPS,
    .offers = strips_offers,
    .cost = strips_cost,
    .lower = strips_lower,
};
