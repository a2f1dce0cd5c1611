/* All rows at once, for threads that stand alone: runs of 1, 2, 4, ... positions are merged, and each place of a merged
 * run finds by itself what comes there.  Of d places before it i are of the left run where the left run's element i is
 * the first that does not come before the right one's d - 1 - i; bisection finds it (Odeh et al. 2012). */
#include "kernel/lower/sorting.h"

enum { PIECE_KEYS, PIECE_AT, PIECE_SPARE_AT };

typedef struct Merging {
    Sort *sort;
    uint32_t keys, from, into; /* buffers, of all rows */
    Index row;                 /* where it begins in them */
} Merging;

/* Opens loops over all rows and `count` places of each. */
static Index open_places(Lower *lower, Merging *m, int64_t count)
{
    Shape rows = *value_shape(lower->graph, m->sort->node->in[0]);
    uint32_t d = m->sort->sorting.dimension;
    const Var *var = index_var_new(lower->arena, "p", 0, count - 1);
    sorting_open_rows(lower, m->sort);
    rows.dim[d] = 1;
    m->sort->position[d] = index_constant(0);
    m->row =
        index_scale(lower->arena, index_flatten(lower->arena, m->sort->position, rows.dim, rows.rank), m->sort->extent);
    if (count > 1)
        lower_enter(lower, &stmt_for(lower->arena, lower->block, var, 0, count, 1, LOOP_PARALLEL)->body);
    return index_var(lower->arena, var);
}

static void make_keys(Lower *lower, Merging *m)
{
    Block *start = lower->block;
    Index p = open_places(lower, m, m->sort->extent), at = index_add(lower->arena, m->row, p);
    stmt_store(lower->arena, lower->block, m->keys, at, sorting_key(lower, m->sort, p));
    stmt_store(lower->arena, lower->block, m->from, at, expr_index(lower->arena, DT_I32, p));
    lower_leave(lower, start);
}

/* One place of a merged run */

static const Expr *word(Lower *lower, Word op, const Expr *a, const Expr *b)
{
    return expr_word(lower->arena, op, DT_I64, a, b, NULL);
}

static const Expr *named(Lower *lower, const char *name, const Expr *value)
{
    return expr_local(lower->arena, sorting_name(lower, name, value));
}

/* Of these numbers one that is a place of the row. */
static Index place(Lower *lower, const Merging *m, const Expr *number)
{
    const Expr *inside = word(lower, WORD_MAX, number, sorting_number(lower, 0));
    inside = word(lower, WORD_MIN, inside, sorting_number(lower, (double)(m->sort->extent - 1)));
    return index_add(lower->arena, m->row, index_data(lower->arena, inside, 0, m->sort->extent - 1));
}

static const Expr *key_at(Lower *lower, const Merging *m, const Expr *number)
{
    Arena *arena = lower->arena;
    const Expr *at = expr_cast(arena, DT_I64, expr_load(arena, DT_I32, m->from, place(lower, m, number)));
    Index where = index_data(arena, at, 0, m->sort->extent - 1);
    return expr_load(arena, m->sort->key, m->keys, index_add(arena, m->row, where));
}

typedef struct Runs { /* numbers: where the left one begins and the right one does, and where that ends */
    const Expr *left, *right, *end, *before;
} Runs;

/* Where the runs of so many places are that meet at place p, and how many places of theirs are before it. */
static Runs find_runs(Lower *lower, const Merging *m, Index p, int64_t width)
{
    Arena *arena = lower->arena;
    const Expr *extent = sorting_number(lower, (double)m->sort->extent);
    Index left = index_scale(arena, index_div(arena, p, 2 * width), 2 * width);
    Runs runs = {.left = named(lower, "left", expr_index(arena, DT_I64, left))};
    const Expr *right = word(lower, WORD_ADD, runs.left, sorting_number(lower, (double)width));
    const Expr *end = word(lower, WORD_ADD, runs.left, sorting_number(lower, 2.0 * (double)width));
    runs.right = named(lower, "right", word(lower, WORD_MIN, right, extent));
    runs.end = named(lower, "end", word(lower, WORD_MIN, end, extent));
    runs.before = named(lower, "before", word(lower, WORD_SUB, expr_index(arena, DT_I64, p), runs.left));
    return runs;
}

/* How many of the places before are of the left run, by bisection: it is between these. */
static const Expr *count_left(Lower *lower, const Merging *m, const Runs *runs, int64_t width)
{
    Arena *arena = lower->arena;
    const Expr *zero = sorting_number(lower, 0), *one = sorting_number(lower, 1);
    const Expr *of_right = word(lower, WORD_SUB, runs->end, runs->right);
    const Expr *of_left = word(lower, WORD_SUB, runs->right, runs->left);
    const Expr *least = word(lower, WORD_MAX, word(lower, WORD_SUB, runs->before, of_right), zero);
    const Local *low = sorting_name(lower, "low", least);
    const Local *high = sorting_name(lower, "high", word(lower, WORD_MIN, runs->before, of_left));
    const Expr *l = expr_local(arena, low), *h = expr_local(arena, high);
    int64_t rounds = 1;
    while ((int64_t)1 << (rounds - 1) <= width)
        rounds++;
    Block *outer;
    sorting_loop(lower, "t", index_constant(rounds), rounds, &outer);
    const Expr *sum = word(lower, WORD_ADD, l, h);
    const Expr *middle = named(lower, "middle", word(lower, WORD_SHIFT_RIGHT, sum, one));
    const Expr *across = word(lower, WORD_SUB, word(lower, WORD_SUB, runs->before, one), middle);
    const Expr *a = named(lower, "a", key_at(lower, m, word(lower, WORD_ADD, runs->left, middle)));
    const Expr *b = named(lower, "b", key_at(lower, m, word(lower, WORD_ADD, runs->right, across)));
    const Expr *open = named(lower, "open", expr_word(arena, WORD_LT, DT_BOOL, l, h, NULL));
    const Expr *lies_right = expr_word(arena, WORD_NOT, DT_BOOL, sorting_less(lower, b, a), NULL, NULL);
    const Expr *up = named(lower, "up", expr_word(arena, WORD_AND, DT_BOOL, open, lies_right, NULL));
    const Expr *down = named(lower, "down", expr_word(arena, WORD_AND, DT_BOOL, open, sorting_less(lower, b, a), NULL));
    sorting_set(lower, low, expr_word(arena, WORD_SELECT, DT_I64, up, word(lower, WORD_ADD, middle, one), l));
    sorting_set(lower, high, expr_word(arena, WORD_SELECT, DT_I64, down, middle, h));
    lower_leave(lower, outer);
    return l;
}

static const Expr *merged_at(Lower *lower, const Merging *m, const Runs *runs, const Expr *of_left)
{
    Arena *arena = lower->arena;
    const Expr *left = named(lower, "from_left", word(lower, WORD_ADD, runs->left, of_left));
    const Expr *right =
        named(lower, "from_right", word(lower, WORD_ADD, runs->right, word(lower, WORD_SUB, runs->before, of_left)));
    const Expr *some = expr_word(arena, WORD_LT, DT_BOOL, left, runs->right, NULL);
    const Expr *none_right = expr_word(arena, WORD_LE, DT_BOOL, runs->end, right, NULL);
    const Expr *b = named(lower, "key_right", key_at(lower, m, right));
    const Expr *a = named(lower, "key_left", key_at(lower, m, left));
    const Expr *not_after = expr_word(arena, WORD_NOT, DT_BOOL, sorting_less(lower, b, a), NULL, NULL);
    const Expr *first = expr_word(arena, WORD_OR, DT_BOOL, none_right, not_after, NULL);
    const Expr *takes = expr_word(arena, WORD_AND, DT_BOOL, some, first, NULL);
    const Expr *at = named(lower, "taken", expr_word(arena, WORD_SELECT, DT_I64, takes, left, right));
    return expr_load(arena, DT_I32, m->from, place(lower, m, at));
}

static void merge_runs(Lower *lower, Merging *m, int64_t width)
{
    Block *start = lower->block;
    bool last = 2 * width >= m->sort->extent;
    Index p = open_places(lower, m, last ? m->sort->count : m->sort->extent);
    Runs runs = find_runs(lower, m, p, width);
    const Expr *at = merged_at(lower, m, &runs, count_left(lower, m, &runs, width));
    if (last)
        sorting_store(lower, m->sort, p, at);
    else
        stmt_store(lower->arena, lower->block, m->into, index_add(lower->arena, m->row, p), at);
    lower_leave(lower, start);
    uint32_t from = m->from;
    m->from = m->into;
    m->into = from;
}

static void give_first(Lower *lower, Merging *m)
{
    Block *start = lower->block;
    Index p = open_places(lower, m, 1);
    sorting_store(lower, m->sort, p, expr_number(lower->arena, DT_I64, 0));
    lower_leave(lower, start);
}

static void merging_lower(Lower *lower)
{
    Sort sort;
    if (!sorting_begin(lower, lower->kernel, &sort))
        return;
    Merging m = {&sort, lower_scratch(lower, PIECE_KEYS), lower_scratch(lower, PIECE_AT),
                 lower_scratch(lower, PIECE_SPARE_AT), index_constant(0)};
    if (sort.extent == 1) {
        give_first(lower, &m);
        return;
    }
    make_keys(lower, &m);
    for (int64_t width = 1; width < sort.extent; width *= 2)
        merge_runs(lower, &m, width);
}

static bool offers(Lower *lower, const Kernel *kernel, Recipe *recipe)
{
    Sort sort;
    if (!sorting_begin(lower, kernel, &sort))
        return true;
    int64_t all = sorting_rows(lower, &sort) * sort.extent;
    recipe_scratch(lower, recipe, "keys", sort.key, all, false);
    recipe_scratch(lower, recipe, "at", DT_I32, all, false);
    recipe_scratch(lower, recipe, "spare_at", DT_I32, all, false);
    return true;
}

static double cost(const Lower *lower, const Kernel *kernel, const Recipe *recipe)
{
    Sort sort;
    double bits = 1;
    (void)recipe;
    if (!sorting_begin(lower, kernel, &sort))
        return 0;
    while ((double)sort.extent > (double)((int64_t)1 << (int)bits))
        bits++;
    return 5 * bits * bits * (double)sort.extent * (double)sorting_rows(lower, &sort);
}

const Provider provider_merging = {
    .name = "merging",
    .doc = "runs of all rows merged, each place by bisection",
    .knob = (const KnobSpec[]){{NULL, 0, NULL}},
    .forms = 1u << FORM_SORT,
    .offers = offers,
    .cost = cost,
    .lower = merging_lower,
};
