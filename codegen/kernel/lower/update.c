/* Updates: where the result lies in the memory of x (storage), only what differs is stored; else x is copied first.
 * dynamic_update: x with y in place of the part that begins at run-time positions. */
#include "kernel/lower/lower.h"

#include "ops/meaning.h"

/* One memory, whatever runs? */
static bool is_in_place(const Lower *lower, const Node *node)
{
    ValueId result = node->out[0], owner = kernel_view_owner(lower->graph, node->in[0]);
    const Storage *to = &lower->storage->at[result], *from = &lower->storage->at[owner];
    if (to->role != from->role)
        return false;
    if (storage_is_kept(to->role))
        return to->index == from->index && !to->next;
    if (to->role != STORAGE_ARENA && (to->role != STORAGE_OUTPUT || to->index != from->index))
        return false;
    bool written_over = lower->graph->value[result].inplace != NONE &&
                        kernel_view_owner(lower->graph, lower->graph->value[result].inplace) == owner;
    return written_over || (to->family != NONE && to->family == from->family && to->fixed);
}

static void copy_element(Lower *lower, void *context, const Index *position)
{
    const Node *node = context;
    stmt_store(lower->arena, lower->block, lower_buffer(lower, node->out[0], true),
               lower_value_address(lower, node->out[0], position), lower_value(lower, node->in[0], position));
}

void lower_update_begin(Lower *lower, const Node *node)
{
    if (!is_in_place(lower, node))
        lower_nest_each(lower, value_type(lower->graph, node->out[0]), copy_element, (void *)(uintptr_t)node);
}

typedef struct Replacement {
    const Node *node;
    Index begin[MAX_RANK];
} Replacement;

static void replace_element(Lower *lower, void *context, const Index *position)
{
    const Replacement *r = context;
    Index to[MAX_RANK];
    for (uint32_t d = 0; d < value_shape(lower->graph, r->node->out[0])->rank; d++)
        to[d] = index_add(lower->arena, position[d], r->begin[d]);
    stmt_store(lower->arena, lower->block, lower_buffer(lower, r->node->out[0], true),
               lower_value_address(lower, r->node->out[0], to), lower_value(lower, r->node->in[2], position));
}

static void update_lower(Lower *lower)
{
    const Node *node = &lower->graph->node[lower->kernel->anchor];
    Replacement replacement = {.node = node};
    const Type *part = value_type(lower->graph, node->in[2]);
    lower_update_begin(lower, node);
    for (uint32_t d = 0; d < part->shape.rank; d++)
        replacement.begin[d] = lower_dynamic_begin(lower, node, d);
    if (shape_elements(&part->shape) > 0)
        lower_nest_each(lower, part, replace_element, &replacement);
}

static bool offers(Lower *lower, const Kernel *kernel, Recipe *recipe)
{
    (void)recipe;
    return node_is_dynamic_update(&lower->graph->node[kernel->anchor]);
}

static double cost(const Lower *lower, const Kernel *kernel, const Recipe *recipe)
{
    (void)recipe;
    return (double)shape_elements(value_shape(lower->graph, lower->graph->node[kernel->anchor].in[2]));
}

static const KnobSpec no_knobs[] = {{NULL, 0, NULL}};

const Provider provider_update = {
    .name = "update",
    .doc = "the part in its place; a copy of the rest before, where it is not there",
    .knob = no_knobs,
    .forms = 1u << FORM_UPDATE,
    .offers = offers,
    .cost = cost,
    .lower = update_lower,
};
