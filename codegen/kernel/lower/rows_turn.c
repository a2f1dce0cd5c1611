/* An operand of rows whose columns are far apart, while neighbours in memory are of neighbouring rows: a normalisation
 * over the channels of an image, say.  As many rows as a vector has lanes are brought into scratch by squares that are
 * turned in registers, and every stage reads them there. */
#include "base/number.h"
#include "kernel/lower/rows.h"

#define SHARE 4 /* of the second level may be scratch */

static const char turned_name[] = "turned";

/* Only at the position of the row and the column at hand? */
static bool is_read_in_place(const Lower *lower, ValueId value)
{
    bool here = true;
    for (uint32_t i = lower->users->first[value]; i < lower->users->first[value + 1]; i++) {
        const Node *reader = &lower->graph->node[lower->users->user[i]];
        OpFamily family = op_info(reader->op)->family;
        here &= kernel_has(lower, reader) ? family == FAMILY_ELEMENTWISE || family == FAMILY_REDUCE
                                          : !kernel_only_reads(lower->graph, reader);
    }
    return here;
}

/* Where an element at row `i` of the last dimension of rows, and at a column, is in memory. */
static bool find_address(Lower *lower, const RowSpace *space, ValueId value, const Index *row, Index i, Index column,
                         ValueId *source, Index *address)
{
    Index position[MAX_RANK];
    for (uint32_t d = 0; d + 1 < space->row_rank; d++)
        position[d] = row ? row[d] : index_constant(0);
    position[space->row_rank - 1] = i;
    index_unflatten(lower->arena, column, space->shape->dim + space->row_rank, space->shape->rank - space->row_rank,
                    position + space->row_rank);
    return lower_memory_source(lower, value, position, source, address);
}

static bool is_across(Lower *lower, const RowSpace *space, ValueId value)
{
    ValueId source;
    Index address;
    int64_t along, step;
    const Var *i = index_var_new(lower->arena, "i", 0, space->shape->dim[space->row_rank - 1] - 1),
              *j = index_var_new(lower->arena, "j", 0, space->columns - 1);
    return shape_eq(value_shape(lower->graph, value), space->shape) && !kernel_computes(lower, value) &&
           value_type(lower->graph, value)->dtype == DT_F32 && is_read_in_place(lower, value) &&
           find_address(lower, space, value, NULL, index_var(lower->arena, i), index_var(lower->arena, j), &source,
                        &address) &&
           value_type(lower->graph, source)->dtype == DT_F32 && index_factor(address, i, &along) && along == 1 &&
           index_factor(address, j, &step) && step >= lower->target->lanes;
}

ValueId lower_turned_operand(Lower *lower, const RowSpace *space)
{
    int64_t lanes = lower->target->lanes;
    if (lower->target->dialect != DIALECT_VECTOR || lower->target->small || lower->brief || lower->lean || lanes < 4 ||
        !space->row_rank || space->columns < lanes || space->shape->dim[space->row_rank - 1] < lanes ||
        SHARE * lanes * space->columns * (int64_t)sizeof(float) > lower->target->l2_bytes)
        return NONE;
    for (uint32_t n = 0; n < lower->kernel->node_count; n++) {
        const Node *node = &lower->graph->node[lower->kernel->node[n]];
        for (uint32_t i = 0; i < node->in_count; i++)
            if (is_across(lower, space, node->in[i]))
                return node->in[i];
    }
    return NONE;
}

void lower_plan_turned(Lower *lower, const RowSpace *space, Recipe *recipe)
{
    if (lower_turned_operand(lower, space) != NONE)
        recipe_scratch(lower, recipe, turned_name, DT_F32, lower->target->lanes * space->columns, true);
}

uint32_t lower_turned_piece(const Recipe *recipe)
{
    for (uint32_t i = 0; i < recipe->scratch_count; i++)
        if (recipe->scratch[i].name == turned_name)
            return i;
    return NONE;
}

/* Rows first + from ... of `lanes`, by squares; the last of these begins inside the one before it.  False where columns
 * of these rows are not a step apart. */
static bool fill_squares(Lower *lower, const TurnedRows *turned, int64_t from, int64_t lanes)
{
    Arena *arena = lower->arena;
    const RowSpace *space = turned->space;
    int64_t count = ceil_div(space->columns, lanes);
    const Var *square = index_var_new(arena, "square", 0, count - 1),
              *j = index_var_new(arena, "j", 0, space->columns - 1);
    Block *outer = lower->block;
    ValueId source;
    Index address;
    int64_t step;
    if (!find_address(lower, space, turned->value, turned->row, index_add(arena, turned->first, index_constant(from)),
                      index_var(arena, j), &source, &address) ||
        !index_factor(address, j, &step))
        return false;
    if (count > 1)
        lower->block = &stmt_for(arena, outer, square, 0, count, 1, LOOP_SERIAL)->body;
    Index column = count > 1 ? index_scale(arena, index_var(arena, square), lanes) : index_constant(0);
    column = lower_last_inside(lower, "column", column, space->columns - lanes);
    uint32_t buffer = lower_buffer(lower, source, false);
    Index at = index_add(arena, index_substitute(arena, address, j, column),
                         index_constant(-lower->kernel->buffer[buffer].begin));
    stmt_transpose(arena, lower->block, (uint32_t)lanes, turned->buffer,
                   index_add(arena, column, index_constant(from * space->columns)), space->columns,
                   expr_load(arena, DT_F32, buffer, at), step);
    lower_leave(lower, outer);
    return true;
}

static void fill_elements(Lower *lower, const TurnedRows *turned, int64_t from)
{
    Arena *arena = lower->arena;
    const RowSpace *space = turned->space;
    const Var *j = index_var_new(arena, "j", 0, space->columns - 1);
    Block *body = &stmt_for(arena, lower->block, j, 0, space->columns, 1, LOOP_SERIAL)->body;
    for (int64_t r = from; r < turned->count; r++) {
        ValueId source;
        Index address;
        find_address(lower, space, turned->value, turned->row, index_add(arena, turned->first, index_constant(r)),
                     index_var(arena, j), &source, &address);
        uint32_t buffer = lower_buffer(lower, source, false);
        address = index_add(arena, address, index_constant(-lower->kernel->buffer[buffer].begin));
        stmt_store(arena, body, turned->buffer,
                   index_add(arena, index_var(arena, j), index_constant(r * space->columns)),
                   expr_load(arena, DT_F32, buffer, address));
    }
}

void lower_fill_turned(Lower *lower, const TurnedRows *turned)
{
    int64_t done = 0;
    for (int64_t lanes = lower->target->lanes; lanes >= 4; lanes /= 2)
        while (done + lanes <= turned->count && fill_squares(lower, turned, done, lanes))
            done += lanes;
    if (done < turned->count)
        fill_elements(lower, turned, done);
}
