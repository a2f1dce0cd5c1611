/* Evaluation of contractions, as products of a panel of rows [rows, k] with a matrix [k, columns]; k counts the sums
 * and taps.  Everything is widened to double or int64, summed over k in order, and rounded once.
 *
 * For each position of the batch axes both are gathered from the operands through their accesses, zeros where they read
 * nothing.  The matrix is packed as blocks [columns / BLOCK][k][BLOCK], so that the inner loop runs over contiguous
 * numbers and keeps its sums in registers; columns are taken PANEL at a time and rows ROWS at a time, which bounds the
 * scratch memory. */
#include "base/number.h"
#include "ops/contract.h"
#include "ops/elements.h"
#include "ops/families.h"

#define BLOCK 16
#define PANEL 128 /* columns; a multiple of BLOCK */
#define ROWS  64

#define DEFINE_DOT(NAME, T)                                                                                            \
    static void NAME(int64_t k, const T *row, const T *packed, T *result)                                              \
    {                                                                                                                  \
        T sum[BLOCK] = {0};                                                                                            \
        for (int64_t i = 0; i < k; i++)                                                                                \
            for (int j = 0; j < BLOCK; j++)                                                                            \
                sum[j] += row[i] * packed[i * BLOCK + j];                                                              \
        for (int j = 0; j < BLOCK; j++)                                                                                \
            result[j] = sum[j];                                                                                        \
    }
DEFINE_DOT(dot_f64, double)
DEFINE_DOT(dot_i64, int64_t)

/* panel is [rows, k], packed is [columns / BLOCK][k][BLOCK], result is [rows, PANEL]. */
static void panel_product(Compute compute, int64_t rows, int64_t k, int64_t columns, const Number *panel,
                          const Number *packed, Number *result)
{
    for (int64_t j = 0; j < columns; j += BLOCK)
        for (int64_t r = 0; r < rows; r++)
            if (compute == COMPUTE_F64)
                dot_f64(k, &panel[r * k].f, &packed[j * k].f, &result[r * PANEL + j].f);
            else
                dot_i64(k, &panel[r * k].i, &packed[j * k].i, &result[r * PANEL + j].i);
}

/* Walks */

typedef struct Point {    /* where an operand is read */
    int64_t element;      /* its number, without the dimensions that are divided */
    int64_t at[MAX_RANK]; /* per guard: the position, before it is divided */
} Point;

typedef struct Stride { /* an axis as one operand walks it: what a step adds to the point */
    int64_t extent;
    Point step;
} Stride;

typedef struct Walks { /* nested, the last one innermost; there is one at least */
    Stride walk[MOST_AXES];
    uint32_t count;
    int64_t extent; /* of all together */
} Walks;

typedef struct Guard {
    int64_t extent, divisor, stride; /* stride 0: the element's number has the dimension already */
} Guard;

/* A tensor and how it is walked.  Of the first operand rows go across and what is summed goes deep, of the second one
 * columns go across; of the result rows go across and columns deep. */
typedef struct Walker {
    const Tensor *tensor;
    Compute compute;
    Guard guard[MAX_RANK];
    uint32_t guard_count;
    bool divides;
    Point start;
    Walks batch, across, deep;
    bool runs_deep; /* read in runs along the innermost walk that goes deep, rather than the one that goes across */
} Walker;

static Point stepped(const Walker *walker, Point point, const Point *step, int64_t steps)
{
    point.element += step->element * steps;
    for (uint32_t g = 0; g < walker->guard_count; g++)
        point.at[g] += step->at[g] * steps;
    return point;
}

/* `number` positions along the first `count` walks. */
static Point moved(const Walker *walker, Point point, const Walks *walks, uint32_t count, int64_t number)
{
    for (uint32_t i = count; i-- > 0; number /= walks->walk[i].extent)
        point = stepped(walker, point, &walks->walk[i].step, number % walks->walk[i].extent);
    return point;
}

static bool continues(const Walker *walker, const Stride *outer, const Stride *inner)
{
    bool same = outer->step.element == inner->step.element * inner->extent;
    for (uint32_t g = 0; g < walker->guard_count; g++)
        same &= outer->step.at[g] == inner->step.at[g] * inner->extent;
    return same;
}

/* Neighbouring axes that one step walks through are joined, so that runs get long. */
static void add_walk(const Walker *walker, Walks *walks, Stride walk)
{
    walks->extent *= walk.extent;
    if (walk.extent == 1)
        return;
    Stride *last = &walks->walk[walks->count - 1];
    if (last->extent == 1)
        *last = walk;
    else if (continues(walker, last, &walk))
        *last = (Stride){last->extent * walk.extent, walk.step};
    else
        walks->walk[walks->count++] = walk;
}

static void add_axis(Walker *walker, Walks *walks, const Access *access, const Strided *own, uint32_t axis,
                     int64_t extent)
{
    Stride walk = {.extent = extent};
    for (uint32_t d = 0, g = 0; d < access->rank; d++) {
        walk.step.element += access->divisor[d] > 1 ? 0 : access->factor[d][axis] * own->stride[d];
        if (access->guarded[d])
            walk.step.at[g++] = access->factor[d][axis];
    }
    add_walk(walker, walks, walk);
}

static void start_walker(Walker *walker, const Access *access, const Strided *own)
{
    for (uint32_t d = 0; d < access->rank; d++) {
        bool divides = access->divisor[d] > 1;
        walker->start.element += divides ? 0 : access->begin[d] * own->stride[d];
        walker->divides |= divides;
        if (!access->guarded[d])
            continue;
        walker->start.at[walker->guard_count] = access->begin[d];
        walker->guard[walker->guard_count++] = (Guard){own->dim[d], access->divisor[d], divides ? own->stride[d] : 0};
    }
}

static int64_t distance(int64_t step)
{
    return step < 0 ? -step : step ? step : 1;
}

/* Long runs are good, and runs of neighbours. */
static bool runs_better(const Walks *walks, const Walks *than)
{
    const Stride *a = &walks->walk[walks->count - 1], *b = &than->walk[than->count - 1];
    return (double)a->extent * (double)distance(b->step.element) >=
           (double)b->extent * (double)distance(a->step.element);
}

#define ROLES(role) (1u << (role))

static Walker walker_of(const Contraction *c, const Access *access, const Tensor *tensor, uint32_t across,
                        uint32_t deep)
{
    Strided own = strided_plain(&tensor->type->shape);
    Walker walker = {.tensor = tensor, .compute = elements_compute_exact(tensor->type->dtype)};
    start_walker(&walker, access, &own);
    walker.batch = walker.across = walker.deep = (Walks){.walk = {{.extent = 1}}, .count = 1, .extent = 1};
    for (uint32_t a = 0; a < c->axis_count; a++) {
        uint32_t role = ROLES(c->axis[a].role);
        Walks *walks = role & across              ? &walker.across
                       : role & deep              ? &walker.deep
                       : role & ROLES(AXIS_BATCH) ? &walker.batch
                                                  : NULL;
        if (walks)
            add_axis(&walker, walks, access, &own, a, c->axis[a].extent);
    }
    walker.runs_deep = runs_better(&walker.deep, &walker.across);
    return walker;
}

/* Reading */

#define LINE 128 /* numbers; PANEL and ROWS are not above it */

static void load_inside(const Walker *walker, int64_t element, int64_t step, int64_t count, Number *to, int64_t stride)
{
    Number line[LINE];
    if (count <= 0)
        return;
    if (stride == 1) {
        elements_load_run(walker->tensor, (Run){element, step, count}, walker->compute, to);
        return;
    }
    for (int64_t done = 0; done < count; done += LINE) {
        int64_t some = count - done < LINE ? count - done : LINE;
        elements_load_run(walker->tensor, (Run){element + done * step, step, some}, walker->compute, line);
        for (int64_t i = 0; i < some; i++)
            to[(done + i) * stride] = line[i];
    }
}

static void zero(Number *to, int64_t stride, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++)
        to[i * stride].i = 0; /* the bits of 0.0 as well */
}

static int64_t divide_up(int64_t a, int64_t b) /* b > 0 */
{
    return a > 0 ? (a + b - 1) / b : -(-a / b);
}

/* The part [*low, *high) of a run of `count` in which 0 <= at + step * i < extent. */
static void clip(int64_t at, int64_t step, int64_t extent, int64_t *low, int64_t *high)
{
    int64_t from = step > 0 ? divide_up(-at, step) : step < 0 ? divide_up(at - extent + 1, -step) : 0;
    int64_t to = step > 0 ? divide_up(extent - at, step) : step < 0 ? divide_up(at + 1, -step) : *high;
    if (step == 0 && (at < 0 || at >= extent))
        to = 0;
    *low = from > *low ? from : *low;
    *high = to < *high ? to : *high;
}

/* Where a dimension is divided: one by one. */
static void read_divided(const Walker *walker, Point point, const Stride *walk, int64_t count, Number *to,
                         int64_t stride)
{
    for (int64_t i = 0; i < count; i++, point = stepped(walker, point, &walk->step, 1)) {
        int64_t element = point.element;
        bool inside = true;
        for (uint32_t g = 0; g < walker->guard_count; g++) {
            const Guard *guard = &walker->guard[g];
            int64_t position = point.at[g] / guard->divisor;
            inside &= point.at[g] >= 0 && point.at[g] % guard->divisor == 0 && position < guard->extent;
            element += position * guard->stride;
        }
        if (inside)
            load_inside(walker, element, 0, 1, &to[i * stride], 1);
        else
            to[i * stride].i = 0;
    }
}

static void read_run(const Walker *walker, const Point *point, const Stride *walk, int64_t count, Number *to,
                     int64_t stride)
{
    int64_t low = 0, high = count;
    if (walker->divides) {
        read_divided(walker, *point, walk, count, to, stride);
        return;
    }
    for (uint32_t g = 0; g < walker->guard_count; g++)
        clip(point->at[g], walk->step.at[g], walker->guard[g].extent, &low, &high);
    low = low < count ? low : count;
    high = high > low ? high : low;
    zero(to, stride, 0, low);
    load_inside(walker, point->element + low * walk->step.element, walk->step.element, high - low, to + low * stride,
                stride);
    zero(to, stride, high, count);
}

/* `count` positions along the innermost walk across, all of the innermost walk deep. */
static void read_tile(const Walker *walker, Point point, int64_t count, Number *to, int64_t across_stride,
                      int64_t deep_stride)
{
    const Stride *across = &walker->across.walk[walker->across.count - 1];
    const Stride *deep = &walker->deep.walk[walker->deep.count - 1];
    if (walker->runs_deep)
        for (int64_t i = 0; i < count; i++, point = stepped(walker, point, &across->step, 1))
            read_run(walker, &point, deep, deep->extent, to + i * across_stride, deep_stride);
    else
        for (int64_t i = 0; i < deep->extent; i++, point = stepped(walker, point, &deep->step, 1))
            read_run(walker, &point, across, count, to + i * deep_stride, across_stride);
}

/* All that is deep at `count` positions across, from the first on. */
static void gather(const Walker *walker, Point point, int64_t first, int64_t count, Number *to, int64_t across_stride,
                   int64_t deep_stride)
{
    const Walks *across = &walker->across, *deep = &walker->deep;
    const Stride *inner = &across->walk[across->count - 1];
    int64_t depth = deep->walk[deep->count - 1].extent, some;
    for (int64_t done = 0; done < count && deep->extent; done += some) {
        int64_t begin = (first + done) % inner->extent;
        some = inner->extent - begin < count - done ? inner->extent - begin : count - done;
        Point row = moved(walker, point, across, across->count, first + done);
        for (int64_t k = 0; k < deep->extent; k += depth)
            read_tile(walker, moved(walker, row, deep, deep->count - 1, k / depth), some,
                      to + done * across_stride + k * deep_stride, across_stride, deep_stride);
    }
}

static void pack(const Walker *matrix, Point point, int64_t first, int64_t columns, Number *packed)
{
    int64_t k = matrix->deep.extent;
    for (int64_t j = 0; j < columns; j += BLOCK) {
        int64_t count = columns - j < BLOCK ? columns - j : BLOCK;
        if (count < BLOCK)
            zero(packed + j * k, 1, 0, k * BLOCK);
        gather(matrix, point, first + j, count, packed + j * k, 1, BLOCK);
    }
}

/* Writing */

/* The numbers at from[i * stride], to positions of the walks from the first on. */
static void store_line(const Walker *walker, Tensor *out, Point point, const Walks *walks, int64_t first, int64_t count,
                       const Number *from, int64_t stride)
{
    const Stride *inner = &walks->walk[walks->count - 1];
    int64_t some;
    for (int64_t done = 0; done < count; done += some) {
        int64_t left = inner->extent - (first + done) % inner->extent;
        Number line[LINE];
        some = inner->step.element == 1 ? left : 1;
        some = some < count - done ? some : count - done;
        for (int64_t i = 0; i < some; i++)
            line[i] = from[(done + i) * stride];
        elements_store(out, moved(walker, point, walks, walks->count, first + done).element, some, walker->compute,
                       line);
    }
}

/* Rows and columns of a tile, [rows, PANEL]; runs go along whichever are neighbours in the result. */
static void store_tile(const Walker *walker, Tensor *out, Point point, int64_t row, int64_t rows, int64_t column,
                       int64_t columns, const Number *result)
{
    const Walks *across = &walker->across, *deep = &walker->deep;
    if (across->walk[across->count - 1].step.element == 1)
        for (int64_t j = 0; j < columns; j++)
            store_line(walker, out, moved(walker, point, deep, deep->count, column + j), across, row, rows, result + j,
                       PANEL);
    else
        for (int64_t i = 0; i < rows; i++)
            store_line(walker, out, moved(walker, point, across, across->count, row + i), deep, column, columns,
                       result + i * PANEL, 1);
}

static void add_bias(Compute compute, const Number *bias, int64_t rows, int64_t columns, Number *result)
{
    for (int64_t i = 0; i < rows; i++, result += PANEL)
        for (int64_t j = 0; j < columns; j++)
            if (compute == COMPUTE_F64)
                result[j].f += bias[j].f;
            else
                result[j].i += bias[j].i;
}

/* All together */

typedef struct Evaluation {
    Walker first, second, result, bias;
    bool has_bias;
    Tensor *out;
    Number *packed, *panel, *sums;
} Evaluation;

/* The bias goes with batches and columns. */
static Walker bias_walker(const Contraction *c, const Tensor *bias)
{
    Access access = {.rank = 1, .divisor = {1}};
    for (uint32_t a = 0; a < c->axis_count; a++)
        access.factor[0][a] = c->result.factor[c->bias_dimension][a];
    return walker_of(c, &access, bias, ROLES(AXIS_COLUMN), 0);
}

static void eval_columns(const Evaluation *e, int64_t batch, int64_t column, int64_t columns)
{
    const Walker *first = &e->first, *second = &e->second, *result = &e->result;
    int64_t k = first->deep.extent, all = first->across.extent;
    Point x = moved(first, first->start, &first->batch, first->batch.count, batch);
    Point y = moved(second, second->start, &second->batch, second->batch.count, batch);
    Point to = moved(result, result->start, &result->batch, result->batch.count, batch);
    Number bias[PANEL];

    pack(second, y, column, columns, e->packed);
    if (e->has_bias)
        gather(&e->bias, moved(&e->bias, e->bias.start, &e->bias.batch, e->bias.batch.count, batch), column, columns,
               bias, 1, 1);
    for (int64_t row = 0; row < all; row += ROWS) {
        int64_t rows = all - row < ROWS ? all - row : ROWS;
        gather(first, x, row, rows, e->panel, k, 1);
        panel_product(first->compute, rows, k, columns, e->panel, e->packed, e->sums);
        if (e->has_bias)
            add_bias(first->compute, bias, rows, columns, e->sums);
        store_tile(result, e->out, to, row, rows, column, columns, e->sums);
    }
}

void contraction_eval(const Contraction *c, const Tensor *const *in, Tensor *out)
{
    uint32_t summed = ROLES(AXIS_SUM) | ROLES(AXIS_TAP);
    Arena scratch = {0};
    Evaluation e = {.first = walker_of(c, &c->first, in[0], ROLES(AXIS_ROW), summed),
                    .second = walker_of(c, &c->second, in[1], ROLES(AXIS_COLUMN), summed),
                    .result = walker_of(c, &c->result, out, ROLES(AXIS_ROW), ROLES(AXIS_COLUMN)),
                    .has_bias = c->has_bias,
                    .out = out};
    if (c->has_bias)
        e.bias = bias_walker(c, in[2]);
    int64_t k = e.first.deep.extent, columns = e.second.across.extent, rows = least(e.first.across.extent, ROWS);
    e.packed = ARENA_ARRAY(&scratch, Number, k * least(ceil_div(columns, BLOCK) * BLOCK, PANEL));
    e.panel = ARENA_ARRAY(&scratch, Number, k * rows);
    e.sums = ARENA_ARRAY(&scratch, Number, rows * PANEL);
    for (int64_t batch = 0; batch < e.result.batch.extent && shape_elements(&out->type->shape); batch++)
        for (int64_t j = 0; j < columns; j += PANEL)
            eval_columns(&e, batch, j, columns - j < PANEL ? columns - j : PANEL);
    arena_free(&scratch);
}

void eval_contract(const Graph *graph, const Node *node, const Tensor *const *in, Tensor *const *out)
{
    Contraction contraction = contraction_of(graph, node);
    contraction_eval(&contraction, in, out[0]);
}
