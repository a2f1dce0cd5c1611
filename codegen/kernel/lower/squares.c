/* Copies whose neighbours in the result are far apart in the operand, and the other way round, as those of a transpose
 * and of an image that comes into blocks of channels or leaves them: squares of lanes x lanes, turned in registers, so
 * that whole lines are read and written.  Squares that are narrower than a line go several at a time, and without
 * vectors they are short loops.  What else is done with an operand of f32 is done to the square where it lies in the
 * result, while it is near.  The last square of a row begins inside the one before it; where addresses do not let it,
 * what fills no square goes element by element. */
#include "base/number.h"
#include "kernel/lower/lower.h"

typedef struct Copy {
    Lower *lower;
    const Block *body; /* locals, and one store */
    const Stmt *store;
    const Expr *turned;        /* the load that goes across */
    Block after;               /* what is stored, of the turned element in the result; empty: a copy */
    const Var *along, *across; /* neighbours of the result; of the operand */
    DType dtype;
    int64_t lanes, along_extent, across_extent; /* of a square; of these loops */
    int64_t together;                           /* squares beside each other across that fill a line */
    int64_t from_step, to_step;                 /* of the operand, along; of the result, across */
    bool overlaps[2];                           /* across, along: the last square may begin anywhere */
    bool mixed;                                 /* more than one load is turned */
    bool shares;                                /* another operand may lie where the result does */
    uint32_t square;       /* then: a buffer for the turned square; else NONE, it is the result's */
    const Var *row, *lane; /* in the square as it is stored */
} Copy;

static bool has_whole_memory(const Copy *copy, uint32_t buffer)
{
    const Lower *lower = copy->lower;
    const KernelBuffer *kept = &lower->kernel->buffer[buffer];
    const Storage *storage = &lower->storage->at[kept->storage];
    return storage->inside == NONE && !storage->has_parts && storage->dtype == copy->dtype && !kept->nibbles;
}

/* Of floats there are squares of vectors, of elements of other sizes of 16 bytes. */
static int64_t square_lanes(const Target *target, DType dtype)
{
    int64_t size = dtype_bytes(dtype);
    if (target->dialect != DIALECT_VECTOR)
        return size == 8 ? 8 : 16;
    return size == 4 ? target->lanes : 16 / size;
}

/* May one be kept where the other is, which is read for an element before that is written? */
static bool may_share(const Lower *lower, uint32_t read, uint32_t written)
{
    const Storage *from = &lower->storage->at[lower->kernel->buffer[read].storage],
                  *to = &lower->storage->at[lower->kernel->buffer[written].storage];
    return !storage_is_constant(from->role) && lower->storage->at[from->whole].bytes >= to->bytes;
}

static bool is_straight(const Expr *expr)
{
    bool straight =
        expr->kind == EXPR_LOAD || expr->kind == EXPR_NUMBER || expr->kind == EXPR_WORD || expr->kind == EXPR_LOCAL;
    for (int i = 0; straight && i < 3; i++)
        straight = !expr->arg[i] || is_straight(expr->arg[i]);
    return straight;
}

/* The load whose neighbours are apart: one, though it may be used often.  Where what is read beside it may lie where
 * the result does, the square is put elsewhere first, and none is stored twice. */
static void find_turned(void *context, const Expr *load)
{
    Copy *copy = context;
    int64_t step = 2;
    if (index_factor(load->index, copy->along, &step) && (step == 0 || step == 1)) {
        copy->shares |= may_share(copy->lower, load->buffer, copy->store->buffer);
        return;
    }
    copy->mixed |= copy->turned && !expr_eq(copy->turned, load);
    copy->turned = load;
}

static const Expr *with_turned(const Copy *copy, const Expr *expr, const Expr *with)
{
    if (expr_eq(expr, copy->turned))
        return with;
    Expr *changed = arena_copy(copy->lower->arena, expr, sizeof *expr);
    for (int i = 0; i < 3; i++)
        if (expr->arg[i])
            changed->arg[i] = with_turned(copy, expr->arg[i], with);
    return changed;
}

/* The store that ends straight code; NULL: there is other code. */
static const Stmt *last_store(const Block *body)
{
    const Stmt *stmt = body->first;
    while (stmt && stmt->kind == STMT_LOCAL && stmt->value && is_straight(stmt->value))
        stmt = stmt->next;
    return stmt && !stmt->next && stmt->kind == STMT_STORE && is_straight(stmt->value) ? stmt : NULL;
}

static Index in_square(const Copy *copy)
{
    Arena *arena = copy->lower->arena;
    return index_add(arena, index_scale(arena, index_var(arena, copy->row), copy->lanes), index_var(arena, copy->lane));
}

/* The body, but of the element that is turned already. */
static void find_after(Copy *copy)
{
    Arena *arena = copy->lower->arena;
    const Expr *there = copy->square == NONE ? expr_load(arena, DT_F32, copy->store->buffer, copy->store->index)
                                             : expr_load(arena, DT_F32, copy->square, in_square(copy));
    for (const Stmt *stmt = copy->body->first; stmt != copy->store; stmt = stmt->next)
        stmt_local(arena, &copy->after, stmt->local, with_turned(copy, stmt->value, there));
    stmt_store(arena, &copy->after, copy->store->buffer, copy->store->index,
               with_turned(copy, copy->store->value, there));
}

/* Can all that follows be done to a row of the square at once? */
static bool finishes_vectors(const Copy *copy)
{
    Block each =
        block_substitute(copy->lower->arena, &copy->after, copy->along, index_var(copy->lower->arena, copy->lane));
    return block_vectorizes(&each, copy->lane);
}

static const char square_name[] = "square";

/* Of the recipe's scratch what squares are turned in; NONE: its provider keeps none for them. */
static uint32_t square_piece(const Recipe *recipe)
{
    for (uint32_t i = 0; i < recipe->scratch_count; i++)
        if (recipe->scratch[i].name == square_name)
            return i;
    return NONE;
}

/* Is one element stored, of what is computed of a load that is turned? */
static bool is_turned(Copy *copy)
{
    Lower *lower = copy->lower;
    copy->store = last_store(copy->body);
    if (!copy->store)
        return false;
    copy->dtype = copy->store->value->dtype;
    copy->lanes = square_lanes(lower->target, copy->dtype);
    if (!has_whole_memory(copy, copy->store->buffer))
        return false;
    for (const Stmt *stmt = copy->body->first; stmt; stmt = stmt->next)
        expr_loads(stmt->value, find_turned, copy);
    if (!copy->turned || copy->mixed || copy->turned->dtype != copy->dtype ||
        !has_whole_memory(copy, copy->turned->buffer))
        return false;
    if (copy->turned == copy->store->value)
        return true;
    if (copy->dtype != DT_F32 || lower->target->dialect != DIALECT_VECTOR)
        return false;
    if (copy->shares) {
        uint32_t piece = square_piece(&lower->kernel->recipe);
        if (piece == NONE)
            return false;
        copy->square = lower_scratch(lower, piece);
    }
    find_after(copy);
    return finishes_vectors(copy);
}

/* Are addresses even along the whole of it? */
static bool is_even(const Copy *copy, const Var *var)
{
    int64_t step;
    return index_factor(copy->turned->index, var, &step) && index_factor(copy->store->index, var, &step);
}

/* Are the operand's neighbours across, as far as a square goes? */
static bool goes_across(Copy *copy, const Var *across)
{
    Arena *arena = copy->lower->arena;
    int64_t extent = across->high + 1, squares = extent / copy->lanes, step;
    if (across == copy->along || squares < 1)
        return false;
    const Var *whole = index_var_new(arena, across->name, 0, squares - 1),
              *lane = index_var_new(arena, "lane", 0, copy->lanes - 1);
    Index at = index_add(arena, index_scale(arena, index_var(arena, whole), copy->lanes), index_var(arena, lane));
    Index from = index_substitute(arena, copy->turned->index, across, at);
    Index to = index_substitute(arena, copy->store->index, across, at);
    if (!index_factor(from, lane, &step) || step != 1 || !index_factor(to, lane, &copy->to_step) ||
        !index_factor(from, copy->along, &copy->from_step) || !index_factor(to, copy->along, &step) || step != 1 ||
        copy->from_step < copy->lanes || copy->to_step < copy->lanes)
        return false;
    copy->across = across;
    copy->across_extent = extent;
    return true;
}

static Block *add_loop(const Copy *copy, Block *block, const Var *var, int64_t low, int64_t high)
{
    return high - low > 1 ? &stmt_for(copy->lower->arena, block, var, low, high, 1, LOOP_PARALLEL)->body : block;
}

static int64_t square_count(const Copy *copy, const Var *var, bool overlaps)
{
    return overlaps ? ceil_div(var->high + 1, copy->lanes) : (var->high + 1) / copy->lanes;
}

/* A loop over the squares along one of the copy's loops, `step` at a time; NULL: there is one. */
static const Var *loop_squares(const Copy *copy, const Var *var, bool overlaps, int64_t step)
{
    Lower *lower = copy->lower;
    int64_t extent = var->high + 1, count = square_count(copy, var, overlaps);
    if (count == 1)
        return NULL;
    const Var *part = index_var_new(lower->arena, var->name, 0, count - 1);
    LoopKind kind = count * copy->lanes <= extent ? LOOP_PARALLEL : LOOP_SERIAL;
    lower->block = &stmt_for(lower->arena, lower->block, part, 0, count, step, kind)->body;
    return part;
}

/* The first element of a square */
static Index first_of(const Copy *copy, const Var *var, const Var *square)
{
    Arena *arena = copy->lower->arena;
    Index first = square ? index_scale(arena, index_var(arena, square), copy->lanes) : index_constant(0);
    return lower_last_inside(copy->lower, "first", first, var->high + 1 - copy->lanes);
}

/* The rows of a square in the result, a vector each */
static void finish_square(const Copy *copy, Index across, Index along)
{
    Arena *arena = copy->lower->arena;
    Block *rows = &stmt_for(arena, copy->lower->block, copy->row, 0, copy->lanes, 1, LOOP_SERIAL)->body;
    Block each =
        block_substitute(arena, &copy->after, copy->across, index_add(arena, across, index_var(arena, copy->row)));
    stmt_lanes(arena, rows, copy->lane, (uint32_t)copy->lanes)->body =
        block_substitute(arena, &each, copy->along, index_add(arena, along, index_var(arena, copy->lane)));
}

static void turn_square(const Copy *copy, Index across, Index along)
{
    Lower *lower = copy->lower;
    Arena *arena = lower->arena;
    Index from = index_substitute(arena, copy->turned->index, copy->across, across);
    Index to = index_substitute(arena, copy->store->index, copy->across, across);
    bool apart = copy->square != NONE;
    stmt_transpose(
        arena, lower->block, (uint32_t)copy->lanes, apart ? copy->square : copy->store->buffer,
        apart ? index_constant(0) : index_substitute(arena, to, copy->along, along),
        apart ? copy->lanes : copy->to_step,
        expr_load(arena, copy->dtype, copy->turned->buffer, index_substitute(arena, from, copy->along, along)),
        copy->from_step);
    if (copy->after.first)
        finish_square(copy, across, along);
}

/* A row of squares, from there on across */
static void square_row(const Copy *copy, Index across)
{
    Block *outer = copy->lower->block;
    const Var *square = loop_squares(copy, copy->along, copy->overlaps[1], 1);
    turn_square(copy, across, first_of(copy, copy->along, square));
    lower_leave(copy->lower, outer);
}

/* Rows of squares; as many beside each other as share lines go along together. */
static void square_rows(const Copy *copy, bool overlaps)
{
    Lower *lower = copy->lower;
    Arena *arena = lower->arena;
    int64_t count = square_count(copy, copy->across, overlaps), together = least(copy->together, count);
    const Var *first = count > together || together == 1 ? loop_squares(copy, copy->across, overlaps, together) : NULL;
    if (together == 1) {
        square_row(copy, first_of(copy, copy->across, first));
        return;
    }
    const Var *along = loop_squares(copy, copy->along, copy->overlaps[1], 1),
              *square = index_var_new(arena, "beside", 0, count - 1);
    Index from = first_of(copy, copy->along, along);
    Stmt *loop = stmt_for(arena, lower->block, square, 0, together, 1, LOOP_SERIAL);
    loop->low = first ? index_var(arena, first) : index_constant(0);
    loop->high = index_add(arena, loop->low, index_constant(together));
    loop->clamp_high = count % together != 0;
    loop->high_most = index_constant(count);
    lower->block = &loop->body;
    turn_square(copy, first_of(copy, copy->across, square), from);
}

/* Threads share out rows of squares that do not overlap. */
static void squares(const Copy *copy, Block *block)
{
    Lower *lower = copy->lower;
    Block *outer = lower_enter(lower, block);
    bool apart = copy->overlaps[0] && lower->kernel->threads > 1 && copy->across_extent % copy->lanes;
    square_rows(copy, copy->overlaps[0] && !apart);
    lower_enter(lower, block);
    if (apart)
        square_row(copy, index_constant(copy->across_extent - copy->lanes));
    lower_leave(lower, outer);
}

/* Elements [across_low, across_high) by [along_low, ...). */
static void rest(const Copy *copy, Block *block, int64_t across_low, int64_t across_high, int64_t along_low)
{
    Arena *arena = copy->lower->arena;
    if (across_low == across_high || along_low == copy->along_extent)
        return;
    const Var *across = index_var_new(arena, copy->across->name, across_low, across_high - 1),
              *along = index_var_new(arena, copy->along->name, along_low, copy->along_extent - 1);
    Block body = block_substitute(arena, copy->body, copy->across, index_var(arena, across));
    body = block_substitute(arena, &body, copy->along, index_var(arena, along));
    block = add_loop(copy, block, across, across_low, across_high);
    block = add_loop(copy, block, along, along_low, copy->along_extent);
    block_append(block, body);
}

bool lower_copy_squares(Lower *lower, const Var *const *loop, uint32_t loops, const Block *body)
{
    Copy copy = {.lower = lower, .body = body};
    const Target *target = lower->target;
    bool found = false;
    bool vectors = target->dialect == DIALECT_VECTOR && target->lanes >= 4;
    if (!(vectors || target->dialect == DIALECT_C99) || target->small || target->flash || loops < 2)
        return false;
    copy.square = NONE;
    copy.row = index_var_new(lower->arena, "row", 0, target->lanes - 1); /* of squares of f32 */
    copy.lane = index_var_new(lower->arena, "lane", 0, target->lanes - 1);
    copy.along = loop[loops - 1];
    copy.along_extent = copy.along->high + 1;
    if (!is_turned(&copy))
        return false;
    copy.together = vectors ? most(LINE_BYTES / (copy.lanes * dtype_bytes(copy.dtype)), 1) : 1;
    for (uint32_t i = loops - 1; i-- > 0 && !found;)
        found = copy.along_extent >= copy.lanes && goes_across(&copy, loop[i]);
    if (!found)
        return false;

    Block *block = lower->block;
    for (uint32_t i = 0; i + 1 < loops; i++)
        if (loop[i] != copy.across)
            block = add_loop(&copy, block, loop[i], 0, loop[i]->high + 1);
    int64_t across = copy.across_extent / copy.lanes * copy.lanes, along = copy.along_extent / copy.lanes * copy.lanes;
    copy.overlaps[0] = !copy.shares && is_even(&copy, copy.across);
    copy.overlaps[1] = !copy.shares && is_even(&copy, copy.along);
    if (copy.overlaps[0])
        across = copy.across_extent;
    if (copy.overlaps[1])
        along = copy.along_extent;
    squares(&copy, block);
    rest(&copy, block, 0, across, along);
    rest(&copy, block, across, copy.across_extent, 0);
    return true;
}

/* How far apart neighbours of the result are in the memory of a value: 0 where that is not even. */
static int64_t step_in(Lower *lower, ValueId value)
{
    const Shape *shape = value_shape(lower->graph, value);
    const Var *last = NULL;
    Index position[MAX_RANK], address;
    ValueId source;
    int64_t step;
    for (uint32_t d = 0; d < shape->rank; d++) {
        last = index_var_new(lower->arena, lower_loop_names[d], 0, shape->dim[d] - 1);
        position[d] = index_var(lower->arena, last);
    }
    return lower_memory_source(lower, value, position, &source, &address) && index_factor(address, last, &step) ? step
                                                                                                                : 0;
}

void lower_copy_scratch(Lower *lower, const Kernel *kernel, Recipe *recipe)
{
    const Graph *graph = lower->graph;
    int64_t elements = shape_elements(value_shape(graph, graph->node[kernel->node[0]].out[0]));
    bool turned = false, straight = false;
    if (lower->target->dialect != DIALECT_VECTOR || lower->target->small || lower->target->lanes < 4)
        return;
    for (uint32_t n = 0; n < kernel->node_count; n++) {
        const Node *node = &graph->node[kernel->node[n]];
        for (uint32_t i = 0; i < node->in_count; i++) {
            const Shape *shape = value_shape(graph, node->in[i]);
            if (kernel_computes(lower, node->in[i]) || shape->rank < 2 || shape_elements(shape) != elements)
                continue;
            int64_t step = step_in(lower, node->in[i]);
            turned |= step > 1;
            straight |= step == 1;
        }
    }
    if (turned && straight)
        recipe_scratch(lower, recipe, square_name, DT_F32, lower->target->lanes * lower->target->lanes, true);
}
