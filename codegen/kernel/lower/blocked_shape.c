/* How blocks of threads share a contraction out: the least time by a model of a large GPU, whose figures are those of
 * an H100, fitted to the times of 850 shapes for 20 contractions (as tests/bench/gpu/shapes.py takes them): of those
 * that were timed, the one that it finds fastest takes 4 % more time than the one that is.
 *
 * All blocks of a multiprocessor wait for the slower of two: what they issue, and how long a step takes that waits for
 * memory, of which each has one under way.  Few blocks leave multiprocessors idle, so the depth is split among blocks,
 * which costs another launch, and groups of a block share out a step where tiles are small. */
#include "kernel/lower/blocked.h"

#include "base/number.h"

#define PROCESSORS           132        /* of an H100, each of which issues ... */
#define ISSUED               128        /* instructions of a thread in a cycle */
#define BANKS                32         /* floats that shared memory gives in a cycle */
#define SHARED_BYTES         (48 << 10) /* for a block that does not ask for more */
#define MOST_SPLITS          16
#define MOST_SCRATCH         (1 << 20) /* bytes of sums that splits leave */
#define RESIDENT             2048      /* threads of a multiprocessor */
#define MOST_BLOCKS_RESIDENT 4
#define LATENCY              920 /* cycles, of a step that waits for memory and meets twice */
#define READ                 0.6 /* instructions for an element of an operand from there */
#define FETCHED_LEFT         10  /* instructions for an element: where it is, and into shared memory; */
#define FETCHED_RIGHT        18
#define FETCHED_WINDOW       44   /* what of a window is outside its image is tested for */
#define LAUNCH               6200 /* cycles between two kernels */
#define LINE                 17   /* bytes that a multiprocessor has from memory in a cycle */
#define SECTOR               8    /* floats that memory gives at least */
#define FEWEST_ACROSS        16   /* rows, or columns, of a tile, where the result has as many */
#define MOST_FETCHED         32   /* elements that a thread has under way */
#define MOST_SUMS            4    /* rows, and columns, of a thread */
#define MOST_THREADS         256

int64_t blocked_sums(const BlockedShape *shape)
{
    return shape->groups > 1 ? shape->groups * shape->rows * shape->columns : 0;
}

static int64_t results_bytes(const Blocked *b)
{
    return b->rows * b->columns * b->batches * (int64_t)dtype_bytes(b->dtype);
}

static bool fits(const Blocked *b, const BlockedShape *shape)
{
    int64_t across = shape->rows + shape->columns, threads = blocked_threads(shape), step = blocked_step(shape);
    int64_t elements = (across + 2 * BLOCKED_PAD) * step + blocked_sums(shape);
    return team_fits(b->lower->target, threads) && threads > 0 &&
           elements * (int64_t)dtype_bytes(b->dtype) <= SHARED_BYTES && across * step <= MOST_FETCHED * threads &&
           (shape->splits == 1 ||
            (shape->splits * step < b->depth + step && shape->splits * results_bytes(b) <= MOST_SCRATCH));
}

/* Cycles of shared memory for one position of the depth, of a warp: threads beside each other read neighbours. */
static double shared_cycles(const BlockedShape *shape)
{
    int64_t beside = shape->columns / shape->each_column, across = least(beside, 32), down = 32 / across;
    return (double)(ceil_div(across * shape->each_column, BANKS) + ceil_div(down * shape->each_row, BANKS));
}

/* Of a multiprocessor, for a step of one block: what is slowest of instructions, shared memory and memory. */
static double step_cycles(const Blocked *b, const BlockedShape *shape)
{
    double step = (double)blocked_step(shape), products = (double)(shape->rows * shape->columns) * step / ISSUED;
    bool apart = shape->columns < SECTOR && b->columns > shape->columns && !b->product.transposed;
    int64_t columns = apart ? SECTOR : shape->columns; /* that come, whether asked for or not */
    double warps = (double)blocked_group(shape) / 32, read = warps * step * shared_cycles(shape);
    bool window = !b->is_product && !window_is_pointwise(&b->conv.window);
    double fetched =
        (double)(shape->rows * FETCHED_LEFT + shape->columns * (window ? FETCHED_WINDOW : FETCHED_RIGHT)) * step;
    double issued =
        products * (1 + READ / (double)shape->each_row + READ / (double)shape->each_column) + fetched / ISSUED;
    double brought = (double)(shape->rows + columns) * step * (double)dtype_bytes(b->dtype) / LINE;
    double slower = issued > read ? issued : read;
    return slower > brought ? slower : brought;
}

static double cycles(const Blocked *b, const BlockedShape *shape)
{
    int64_t blocks = ceil_div(b->rows, shape->rows) * ceil_div(b->columns, shape->columns) * b->batches * shape->splits;
    int64_t each = ceil_div(blocks, PROCESSORS), room = RESIDENT / blocked_threads(shape);
    int64_t resident = least(least(each, room), MOST_BLOCKS_RESIDENT);
    double steps = (double)(ceil_div(ceil_div(b->depth, shape->splits), blocked_step(shape)) + 1);
    double busy = step_cycles(b, shape),
           step = (double)resident * busy > LATENCY + busy ? (double)resident * busy : LATENCY + busy;
    double sums = (double)(shape->rows * shape->columns) * (double)(shape->groups > 1 ? shape->groups : 0) / BANKS;
    double total = (double)ceil_div(each, resident) * (steps * step + (double)resident * sums);
    if (shape->splits > 1)
        total += LAUNCH + (double)results_bytes(b) * (double)(shape->splits + 1) / (PROCESSORS * LINE);
    return total;
}

static bool agrees(int64_t asked, int64_t value)
{
    return asked == KNOB_FREE || asked == value;
}

/* Rows or columns of a thread: as many as there are, up to four. */
static int64_t each_of(int64_t extent)
{
    int64_t each = 1;
    while (each < MOST_SUMS && each < extent)
        each *= 2;
    return each;
}

/* Up to four of each, fewer where the threads would have to fetch very many. */
static void set_each(const Blocked *b, BlockedShape *shape)
{
    shape->each_row = each_of(least(shape->rows, b->rows));
    shape->each_column = each_of(least(shape->columns, b->columns));
    while ((shape->rows + shape->columns) * BLOCKED_STEP > MOST_FETCHED * blocked_group(shape) &&
           shape->each_row * shape->each_column > 1) {
        bool wider = shape->each_column >= shape->each_row;
        shape->each_row /= wider ? 1 : 2, shape->each_column /= wider ? 2 : 1;
    }
}

static void try_shape(const Blocked *b, const BlockedShape *shape, BlockedShape *best, double *fewest)
{
    double taken = fits(b, shape) ? cycles(b, shape) : -1;
    if (taken < 0 || (*fewest >= 0 && taken >= *fewest))
        return;
    *fewest = taken;
    *best = *shape;
}

/* Splits by a quarter or so: 1, 2, 3, 4, 6, 8, 12 and so on. */
static int64_t more_splits(int64_t splits)
{
    return splits < 3 ? splits + 1 : splits & (splits - 1) ? splits / 3 * 4 : splits / 2 * 3;
}

static void try_tile(const Blocked *b, const BlockedShape *asked, BlockedShape shape, BlockedShape *best,
                     double *fewest)
{
    bool known = asked->groups != KNOB_FREE || asked->splits != KNOB_FREE;
    for (shape.groups = 1; shape.groups * blocked_group(&shape) <= (int64_t)b->lower->target->team; shape.groups *= 2) {
        if (!agrees(asked->groups, shape.groups) || (!known && blocked_threads(&shape) > MOST_THREADS))
            continue;
        for (shape.splits = 1; shape.splits <= MOST_SPLITS; shape.splits = more_splits(shape.splits))
            if (agrees(asked->splits, shape.splits))
                try_shape(b, &shape, best, fewest);
    }
}

static int64_t power_below(int64_t number)
{
    int64_t power = 1;
    while (power <= number / 2)
        power *= 2;
    return power;
}

/* Tiles that are tried where nobody asks for one: few elements across would be fetched again by many blocks, and many
 * more than the result has would be fetched in vain. */
static bool is_sensible(const Blocked *b, const BlockedShape *shape)
{
    bool small = shape->rows < least(FEWEST_ACROSS, power_below(b->rows)) ||
                 shape->columns < least(FEWEST_ACROSS, power_below(b->columns)) ||
                 (shape->rows == FEWEST_ACROSS && shape->columns == FEWEST_ACROSS);
    bool large =
        (shape->rows >= 2 * b->rows && shape->rows > 1) || (shape->columns >= 2 * b->columns && shape->columns > 1);
    return !small && !large;
}

bool blocked_choose(const Blocked *b, BlockedShape *shape)
{
    double fewest = -1;
    bool asked = shape->rows != KNOB_FREE || shape->columns != KNOB_FREE;
    BlockedShape best = *shape, next;
    for (next.rows = 1; next.rows <= 128; next.rows *= 2)
        for (next.columns = 1; next.columns <= 128; next.columns *= 2) {
            set_each(b, &next);
            if (agrees(shape->rows, next.rows) && agrees(shape->columns, next.columns) &&
                (asked || is_sensible(b, &next)))
                try_tile(b, shape, next, &best, &fewest);
        }
    *shape = best;
    return fewest >= 0;
}
