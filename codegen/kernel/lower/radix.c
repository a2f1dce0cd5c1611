/* Rows sorted by digits of their keys, the lowest first (Knuth, volume 3, 5.2.5): each pass counts nothing, as all
 * digits are counted when keys are made, and moves key and position to where the counts of lower digits say.  It keeps
 * the order of equal ones, has no branches, and takes as long whatever the elements are.
 *
 * Of few of a long row those are found first that can be among them: by counts of the highest digit, up to which digit
 * the first are, and these alone are sorted. */
#include "kernel/lower/sorting.h"

#define DIGIT      8    /* bits */
#define LONG_DIGIT 11   /* of the one to find candidates by, ... */
#define LONG_ROW   2048 /* ... in rows that have as many elements as there are such digits */
#define LEAST_FIND 256  /* elements of a row, from which on candidates are found first */

enum { PIECE_KEYS, PIECE_SPARE_KEYS, PIECE_AT, PIECE_SPARE_AT, PIECE_COUNTS };

typedef struct Items { /* buffers */
    uint32_t keys, at;
} Items;

typedef struct Radix {
    Sort *sort;
    Items items, spare;
    uint32_t counts;
    uint32_t passes, first_bit;
    Index number;       /* of candidates */
    const Local *found; /* the same; NULL: all of the row */
} Radix;

static bool finds(const Sort *sort)
{
    return sort->extent >= LEAST_FIND && sort->end_bit > 8 && sort->count <= sort->extent / 2;
}

static uint32_t find_bits(const Sort *sort)
{
    return sort->extent < LONG_ROW ? DIGIT : LONG_DIGIT;
}

static uint32_t pass_count(const Sort *sort)
{
    return (sort->end_bit - sort->low_bit + DIGIT - 1) / DIGIT;
}

static int64_t counts_of(const Sort *sort)
{
    int64_t all = (int64_t)pass_count(sort) << DIGIT, highest = (int64_t)1 << find_bits(sort);
    return finds(sort) && highest > all ? highest : all;
}

/* Digits and counts */

static const Expr *digit_of(Lower *lower, const Expr *key, uint32_t bit, uint32_t bits)
{
    Arena *arena = lower->arena;
    DType dtype = key->dtype;
    if (bit)
        key = expr_word(arena, WORD_SHIFT_RIGHT, dtype, key, expr_number(arena, dtype, bit), NULL);
    key = expr_word(arena, WORD_BIT_AND, dtype, key, expr_number(arena, dtype, (double)((1u << bits) - 1)), NULL);
    return expr_cast(arena, DT_I64, key);
}

static Index digit_at(Lower *lower, const Expr *key, uint32_t bit, uint32_t bits, int64_t first)
{
    const Local *digit = sorting_name(lower, "digit", digit_of(lower, key, bit, bits));
    return index_add(lower->arena, sorting_at(lower, digit, (1 << bits) - 1), index_constant(first));
}

static const Expr *count_at(Lower *lower, const Radix *r, Index at)
{
    return expr_load(lower->arena, DT_I32, r->counts, at);
}

static void clear_counts(Lower *lower, const Radix *r, int64_t counts)
{
    Block *outer;
    Index d = sorting_loop(lower, "d", index_constant(counts), counts, &outer);
    stmt_store(lower->arena, lower->block, r->counts, d, expr_number(lower->arena, DT_I32, 0));
    lower_leave(lower, outer);
}

static void count_one(Lower *lower, const Radix *r, Index at)
{
    Arena *arena = lower->arena;
    const Expr *more = expr_word(arena, WORD_ADD, DT_I32, count_at(lower, r, at), expr_number(arena, DT_I32, 1), NULL);
    stmt_store(arena, lower->block, r->counts, at, more);
}

static void count_digits(Lower *lower, const Radix *r, const Expr *key)
{
    for (uint32_t p = 0; p < r->passes; p++)
        count_one(lower, r, digit_at(lower, key, r->first_bit + p * DIGIT, DIGIT, (int64_t)p << DIGIT));
}

/* Candidates */

/* Keys of the whole row, of which one digit is counted, or all. */
static void make_keys(Lower *lower, const Radix *r, Items items)
{
    Block *outer;
    int64_t extent = r->sort->extent;
    uint32_t bits = find_bits(r->sort);
    Index j = sorting_loop(lower, "j", index_constant(extent), extent, &outer);
    const Expr *key = sorting_key(lower, r->sort, j);
    stmt_store(lower->arena, lower->block, items.keys, j, key);
    if (r->found)
        count_one(lower, r, digit_at(lower, key, r->sort->end_bit - bits, bits, 0));
    else
        count_digits(lower, r, key);
    lower_leave(lower, outer);
}

/* The highest digit of the last that is asked for, and how many have that digit or a lower one: the first sum that
 * reaches the count. */
static const Local *find_digit(Lower *lower, const Radix *r)
{
    Arena *arena = lower->arena;
    Block *outer;
    int64_t digits = (int64_t)1 << find_bits(r->sort);
    const Expr *count = sorting_number(lower, (double)r->sort->count);
    const Local *last = sorting_name(lower, "last", sorting_number(lower, 0));
    const Local *sum = sorting_name(lower, "sum", sorting_number(lower, 0));
    Index d = sorting_loop(lower, "d", index_constant(digits), digits, &outer);
    const Expr *less = sorting_less(lower, expr_local(arena, r->found), count);
    const Expr *open = expr_local(arena, sorting_name(lower, "open", less));
    const Expr *here = expr_cast(arena, DT_I64, count_at(lower, r, d));
    sorting_set(lower, sum, expr_word(arena, WORD_ADD, DT_I64, expr_local(arena, sum), here, NULL));
    sorting_set(lower, last,
                expr_word(arena, WORD_SELECT, DT_I64, open, expr_index(arena, DT_I64, d), expr_local(arena, last)));
    sorting_set(lower, r->found,
                expr_word(arena, WORD_SELECT, DT_I64, open, expr_local(arena, sum), expr_local(arena, r->found)));
    lower_leave(lower, outer);
    return last;
}

/* Moves those up to that digit to the front, in their order.  What is written behind them is written over. */
static void keep_candidates(Lower *lower, const Radix *r, const Local *last)
{
    Arena *arena = lower->arena;
    Block *outer;
    int64_t extent = r->sort->extent;
    uint32_t bits = find_bits(r->sort);
    const Local *kept = sorting_name(lower, "kept", sorting_number(lower, 0));
    Index j = sorting_loop(lower, "j", index_constant(extent), extent, &outer);
    const Expr *key = expr_local(arena, sorting_name(lower, "key", expr_load(arena, r->sort->key, r->spare.keys, j)));
    Index to = sorting_at(lower, kept, extent - 1);
    stmt_store(arena, lower->block, r->items.keys, to, key);
    stmt_store(arena, lower->block, r->items.at, to, expr_index(arena, DT_I32, j));
    const Expr *digit = digit_of(lower, key, r->sort->end_bit - bits, bits);
    const Expr *stays = expr_word(arena, WORD_LE, DT_BOOL, digit, expr_local(arena, last), NULL);
    sorting_set(lower, kept,
                expr_word(arena, WORD_ADD, DT_I64, expr_local(arena, kept), expr_cast(arena, DT_I64, stays), NULL));
    lower_leave(lower, outer);
}

static void find_candidates(Lower *lower, Radix *r)
{
    Block *outer;
    int64_t extent = r->sort->extent;
    r->found = sorting_name(lower, "found", sorting_number(lower, 0));
    clear_counts(lower, r, (int64_t)1 << find_bits(r->sort));
    make_keys(lower, r, r->spare);
    keep_candidates(lower, r, find_digit(lower, r));
    clear_counts(lower, r, (int64_t)r->passes << DIGIT);
    r->number = sorting_at(lower, r->found, extent);
    Index j = sorting_loop(lower, "j", r->number, extent, &outer);
    count_digits(
        lower, r,
        expr_local(lower->arena, sorting_name(lower, "key", expr_load(lower->arena, r->sort->key, r->items.keys, j))));
    lower_leave(lower, outer);
}

/* Passes */

/* Counts of a pass become the first places of their digits. */
static void sum_counts(Lower *lower, const Radix *r, int64_t first)
{
    Arena *arena = lower->arena;
    Block *outer;
    const Local *sum = sorting_name(lower, "sum", expr_number(arena, DT_I32, 0));
    Index d = sorting_loop(lower, "d", index_constant(1 << DIGIT), 1 << DIGIT, &outer);
    Index at = index_add(arena, d, index_constant(first));
    const Local *count = sorting_name(lower, "count", count_at(lower, r, at));
    stmt_store(arena, lower->block, r->counts, at, expr_local(arena, sum));
    sorting_set(lower, sum, expr_word(arena, WORD_ADD, DT_I32, expr_local(arena, sum), expr_local(arena, count), NULL));
    lower_leave(lower, outer);
}

/* Of the last pass the positions are the result, as far as they are asked for. */
static void put_last(Lower *lower, const Radix *r, const Local *to, const Expr *from)
{
    const Expr *place = expr_local(lower->arena, to);
    Block *outer = lower->block;
    if (r->sort->count < r->sort->extent)
        outer = sorting_if(lower, sorting_less(lower, place, sorting_number(lower, (double)r->sort->count)));
    sorting_store(lower, r->sort, sorting_at(lower, to, r->sort->count - 1), from);
    lower_leave(lower, outer);
}

static void run_pass(Lower *lower, const Radix *r, uint32_t pass)
{
    Arena *arena = lower->arena;
    Items from = pass % 2 ? r->spare : r->items, into = pass % 2 ? r->items : r->spare;
    int64_t extent = r->sort->extent, first = (int64_t)pass << DIGIT;
    Block *outer;
    sum_counts(lower, r, first);
    Index j = sorting_loop(lower, "j", r->number, extent, &outer);
    const Expr *key = expr_local(arena, sorting_name(lower, "key", expr_load(arena, r->sort->key, from.keys, j)));
    const Expr *at = pass || r->found ? expr_load(arena, DT_I32, from.at, j) : expr_index(arena, DT_I32, j);
    Index place = digit_at(lower, key, r->first_bit + pass * DIGIT, DIGIT, first);
    const Local *to = sorting_name(lower, "to", expr_cast(arena, DT_I64, count_at(lower, r, place)));
    count_one(lower, r, place);
    if (pass + 1 == r->passes)
        put_last(lower, r, to, at);
    else {
        Index spot = sorting_at(lower, to, extent - 1);
        stmt_store(arena, lower->block, into.keys, spot, key);
        stmt_store(arena, lower->block, into.at, spot, at);
    }
    lower_leave(lower, outer);
}

static void radix_lower(Lower *lower)
{
    Sort sort;
    Block *start = lower->block;
    if (!sorting_begin(lower, lower->kernel, &sort))
        return;
    Radix r = {.sort = &sort,
               .items = {lower_scratch(lower, PIECE_KEYS), lower_scratch(lower, PIECE_AT)},
               .spare = {lower_scratch(lower, PIECE_SPARE_KEYS), lower_scratch(lower, PIECE_SPARE_AT)},
               .counts = lower_scratch(lower, PIECE_COUNTS),
               .passes = pass_count(&sort),
               .first_bit = sort.end_bit - pass_count(&sort) * DIGIT,
               .number = index_constant(sort.extent)};
    sorting_open_rows(lower, &sort);
    if (finds(&sort))
        find_candidates(lower, &r);
    else {
        clear_counts(lower, &r, (int64_t)r.passes << DIGIT);
        make_keys(lower, &r, r.items);
    }
    for (uint32_t p = 0; p < r.passes; p++)
        run_pass(lower, &r, p);
    lower_leave(lower, start);
}

static bool offers(Lower *lower, const Kernel *kernel, Recipe *recipe)
{
    Sort sort;
    if (lower->target->team) /* no thread has scratch of its own there */
        return false;
    if (!sorting_begin(lower, kernel, &sort))
        return true;
    bool each = sorting_rows(lower, &sort) > 1;
    recipe_scratch(lower, recipe, "keys", sort.key, sort.extent, each);
    recipe_scratch(lower, recipe, "spare_keys", sort.key, sort.extent, each);
    recipe_scratch(lower, recipe, "at", DT_I32, sort.extent, each);
    recipe_scratch(lower, recipe, "spare_at", DT_I32, sort.extent, each);
    recipe_scratch(lower, recipe, "counts", DT_I32, counts_of(&sort), each);
    return true;
}

static double cost(const Lower *lower, const Kernel *kernel, const Recipe *recipe)
{
    Sort sort;
    (void)recipe;
    if (!sorting_begin(lower, kernel, &sort))
        return 0;
    double n = (double)sort.extent, passes = (double)pass_count(&sort), m = n, row = 5 * n;
    if (finds(&sort)) { /* as many share the highest digit of the last, about: exponents have few */
        m = (double)sort.count + n / (find_bits(&sort) == DIGIT ? 4 : 16);
        row += 2.0 * (double)((int64_t)1 << find_bits(&sort));
    }
    return (double)sorting_rows(lower, &sort) * (row + passes * (300 + 3.5 * m));
}

const Provider provider_radix = {
    .name = "radix",
    .doc = "rows sorted by digits of their keys; of a few those alone that may be among them",
    .knob = (const KnobSpec[]){{NULL, 0, NULL}},
    .forms = 1u << FORM_SORT,
    .offers = offers,
    .cost = cost,
    .lower = radix_lower,
};
