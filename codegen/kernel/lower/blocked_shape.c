/* How blocks of threads share a contraction out: the least time by a model of a large GPU, whose figures are those of
 * an H100, fitted to the times of 860 shapes for 15 contractions (as tests/bench/gpu/shapes.py takes them): of those
 * that were timed, the one that it finds fastest takes 3 % more time than the one that is.
 *
 * All blocks of a multiprocessor wait for the slower of two: what they issue, which few warps do not do without waiting
 * for each other's results, and how long a step takes that waits for memory, of which each has one under way.  Few
 * blocks leave multiprocessors idle, so the depth is split among blocks, which costs another launch, and groups of a
 * block share out a step where tiles are small. */
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
#define REGISTERS            65536 /* of a multiprocessor */
#define REGISTERS_OTHER      24    /* of a thread: neither for what it sums up nor for what it fetches */
#define LATENCY              500   /* cycles, of a step that waits for memory and meets twice */
#define READ                 1.3   /* instructions for an element of an operand from there */
#define WAITS                0.5   /* of the time of a warp alone: more warps of a scheduler wait less */
#define WARPS                128   /* threads, that give each scheduler one */
#define FETCHED_ACROSS       3     /* instructions for an element: where it is, and into shared memory; */
#define FETCHED_ALONG        9     /* neighbours follow the depth: they are far from each other there; */
#define FETCHED_TAP          6     /* of a window: whether it is inside the image is tested for; */
#define FETCHED_WINDOW       44    /* for each anew */
#define LAUNCH               4700  /* cycles between two kernels */
#define LINE                 23.5  /* bytes that a multiprocessor has from memory in a cycle */
#define SECTOR               8     /* floats that memory gives at least */
#define FEWEST_ACROSS        16    /* rows, or columns, of a tile, where the result has as many */
#define MOST_FETCHED         32    /* elements that a thread has under way */
#define MOST_THREADS         256
#define FEW_SUMS             16 /* of a thread */
#define MOST_SUMS            64

int64_t blocked_rounds(const Blocked *b, const BlockedShape *shape)
{
    int64_t step = blocked_step(shape);
    return shape->by_tap ? b->taps * ceil_div(b->depth / b->taps, step) : ceil_div(b->depth, step);
}

/* Steps of one tap each, unless most of many would be of nothing: where in its image an element is, and whether it is
 * inside, is then the same for all channels of a step. */
static bool suits_taps(const Blocked *b, const BlockedShape *shape)
{
    BlockedShape by_tap = *shape, flat = *shape;
    by_tap.by_tap = true, flat.by_tap = false;
    return b->packed && b->taps > 1 && 4 * blocked_rounds(b, &by_tap) <= 5 * blocked_rounds(b, &flat);
}

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
            (shape->splits <= blocked_rounds(b, shape) && shape->splits * results_bytes(b) <= MOST_SCRATCH));
}

/* Instructions for an element of an operand, to bring it into shared memory. */
static int64_t fetched(const Blocked *b, const BlockedShape *shape, bool right)
{
    if (right && !b->is_product && !window_is_pointwise(&b->conv.window))
        return shape->by_tap ? FETCHED_TAP : FETCHED_WINDOW;
    return blocked_lies_across(b, right) ? FETCHED_ACROSS : FETCHED_ALONG;
}

/* Of a multiprocessor, for a step of one block: what is slower of instructions and memory. */
static double step_cycles(const Blocked *b, const BlockedShape *shape)
{
    double step = (double)blocked_step(shape), products = (double)(shape->rows * shape->columns) * step / ISSUED;
    bool apart = shape->columns < SECTOR && b->columns > shape->columns && !b->product.transposed;
    int64_t columns = apart ? SECTOR : shape->columns; /* that come, whether asked for or not */
    int64_t fetches = shape->rows * fetched(b, shape, false) + shape->columns * fetched(b, shape, true);
    double issued = products * (1 + READ / (double)shape->each_row + READ / (double)shape->each_column) +
                    (double)fetches * step / ISSUED;
    double brought = (double)(shape->rows + columns) * step * (double)dtype_bytes(b->dtype) / LINE;
    return issued > brought ? issued : brought;
}

/* Blocks for which a multiprocessor has the threads and the registers. */
static int64_t blocks_resident(const BlockedShape *shape)
{
    int64_t threads = blocked_threads(shape), across = shape->rows + shape->columns;
    int64_t registers = shape->each_row * shape->each_column + shape->each_row + shape->each_column +
                        across * blocked_step(shape) / threads + REGISTERS_OTHER;
    int64_t room = least(RESIDENT, REGISTERS / registers) / threads;
    return room > 0 ? room : 1;
}

static double cycles(const Blocked *b, const BlockedShape *shape)
{
    int64_t blocks = ceil_div(b->rows, shape->rows) * ceil_div(b->columns, shape->columns) * b->batches * shape->splits;
    int64_t each = ceil_div(blocks, PROCESSORS), room = blocks_resident(shape);
    int64_t resident = least(least(each, room), MOST_BLOCKS_RESIDENT);
    double steps = (double)(ceil_div(blocked_rounds(b, shape), shape->splits) + 1);
    double busy = step_cycles(b, shape);
    double all = busy * ((double)resident + WAITS * WARPS / (double)blocked_threads(shape));
    double step = all > LATENCY + busy ? all : LATENCY + busy;
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

/* Rows or columns of a thread: as many as there are, up to so many. */
static int64_t each_of(int64_t extent, int64_t most)
{
    int64_t each = 1;
    while (each < most && each < extent)
        each *= 2;
    return each;
}

/* As many sums, square but for a factor of two; fewer where the threads would have to fetch very many. */
static void set_each(const Blocked *b, BlockedShape *shape)
{
    bool tall = shape->rows > shape->columns;
    int64_t side = shape->sums == MOST_SUMS ? 8 : 4, longer = shape->sums == FEW_SUMS ? 4 : 8;
    shape->each_row = each_of(least(shape->rows, b->rows), tall ? longer : side);
    shape->each_column = each_of(least(shape->columns, b->columns), tall ? side : longer);
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
        shape.by_tap = suits_taps(b, &shape);
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
        for (next.columns = 1; next.columns <= 128; next.columns *= 2)
            for (next.sums = FEW_SUMS; next.sums <= MOST_SUMS; next.sums *= 2) {
                set_each(b, &next);
                if (agrees(shape->rows, next.rows) && agrees(shape->columns, next.columns) &&
                    agrees(shape->sums, next.sums) && (asked || is_sensible(b, &next)))
                    try_tile(b, shape, next, &best, &fewest);
            }
    *shape = best;
    return fewest >= 0;
}
