/* The first few of a row, by insertion: a list of candidates in scratch, the worst of them first.  One comparison with
 * that is all that most elements take, and what is better than it goes to its place, which those before it make free.
 * For counts that the list's moves are cheap for. */
#include "kernel/lower/sorting.h"

enum { PIECE_KEYS, PIECE_AT };

typedef struct Insertion {
    Sort *sort;
    uint32_t keys, at; /* buffers */
} Insertion;

static const Expr *listed(Lower *lower, const Insertion *list, Index slot)
{
    return expr_load(lower->arena, list->sort->key, list->keys, slot);
}

/* How many of the `used` entries behind slot `first` the key comes before.  Equal ones were there first. */
static const Local *count_behind(Lower *lower, const Insertion *list, const Expr *key, Index first, Index used)
{
    Arena *arena = lower->arena;
    Block *outer;
    const Local *behind = sorting_name(lower, "behind", sorting_number(lower, 0));
    Index s = sorting_loop(lower, "s", used, list->sort->count - 1, &outer);
    Index slot = index_add(arena, index_add(arena, first, s), index_constant(1));
    const Expr *before = expr_cast(arena, DT_I64, sorting_less(lower, key, listed(lower, list, slot)));
    sorting_set(lower, behind, expr_word(arena, WORD_ADD, DT_I64, expr_local(arena, behind), before, NULL));
    lower_leave(lower, outer);
    return behind;
}

/* Slot `first` is free, or has what is dropped. */
static void insert(Lower *lower, const Insertion *list, const Expr *key, Index at, Index first, Index used)
{
    Arena *arena = lower->arena;
    int64_t count = list->sort->count;
    Index place = first;
    if (count > 1) {
        const Local *behind = count_behind(lower, list, key, first, used);
        Block *outer;
        Index end = sorting_at(lower, behind, count - 1);
        Index s = sorting_loop(lower, "s", end, count - 1, &outer);
        Index to = index_add(arena, first, s), from = index_add(arena, to, index_constant(1));
        stmt_store(arena, lower->block, list->keys, to, listed(lower, list, from));
        stmt_store(arena, lower->block, list->at, to, expr_load(arena, DT_I32, list->at, from));
        lower_leave(lower, outer);
        const Expr *sum =
            expr_word(arena, WORD_ADD, DT_I64, expr_local(arena, behind), expr_index(arena, DT_I64, first), NULL);
        place = first.count ? sorting_at(lower, sorting_name(lower, "place", sum), count - 1) : end;
    }
    stmt_store(arena, lower->block, list->keys, place, key);
    stmt_store(arena, lower->block, list->at, place, expr_index(arena, DT_I32, at));
}

/* The first `count` elements are all candidates: the list grows towards its front. */
static void fill(Lower *lower, const Insertion *list)
{
    Block *outer;
    int64_t count = list->sort->count;
    Index j = sorting_loop(lower, "j", index_constant(count), count, &outer);
    Index first = index_add(lower->arena, index_constant(count - 1), index_scale(lower->arena, j, -1));
    insert(lower, list, sorting_key(lower, list->sort, j), j, first, j);
    lower_leave(lower, outer);
}

static void go_on(Lower *lower, const Insertion *list)
{
    Block *outer;
    int64_t count = list->sort->count, rest = list->sort->extent - count;
    Index zero = index_constant(0);
    Index j = sorting_loop(lower, "j", index_constant(rest), rest, &outer);
    Index at = index_add(lower->arena, j, index_constant(count));
    const Expr *key = sorting_key(lower, list->sort, at);
    sorting_if(lower, sorting_less(lower, key, listed(lower, list, zero)));
    insert(lower, list, key, at, zero, index_constant(count - 1));
    lower_leave(lower, outer);
}

static void give(Lower *lower, const Insertion *list)
{
    Block *outer;
    int64_t count = list->sort->count;
    Index rank = sorting_loop(lower, "s", index_constant(count), count, &outer);
    Index slot = index_add(lower->arena, index_constant(count - 1), index_scale(lower->arena, rank, -1));
    sorting_store(lower, list->sort, rank, expr_load(lower->arena, DT_I32, list->at, slot));
    lower_leave(lower, outer);
}

static void insertion_lower(Lower *lower)
{
    Sort sort;
    Block *start = lower->block;
    if (!sorting_begin(lower, lower->kernel, &sort))
        return;
    Insertion list = {&sort, lower_scratch(lower, PIECE_KEYS), lower_scratch(lower, PIECE_AT)};
    sorting_open_rows(lower, &sort);
    fill(lower, &list);
    if (sort.extent > sort.count)
        go_on(lower, &list);
    give(lower, &list);
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
    recipe_scratch(lower, recipe, "keys", sort.key, sort.count, each);
    recipe_scratch(lower, recipe, "at", DT_I32, sort.count, each);
    return true;
}

/* Of elements in random order the one after j others is among the first with probability count / j; some that are not
 * are counted as well, since a row in the worst order takes each. */
static double cost(const Lower *lower, const Kernel *kernel, const Recipe *recipe)
{
    Sort sort;
    (void)recipe;
    if (!sorting_begin(lower, kernel, &sort))
        return 0;
    double n = (double)sort.extent, k = (double)sort.count, inserted = k;
    for (double span = 1; k * span < n; span *= 2)
        inserted += k * 0.7;
    inserted += sort.extent > sort.count ? n / 32 : 0;
    return (double)sorting_rows(lower, &sort) * (3 * n + inserted * (30 + k));
}

const Provider provider_insertion = {
    .name = "insertion",
    .doc = "a list of the first elements of a row, into which better ones are inserted",
    .knob = (const KnobSpec[]){{NULL, 0, NULL}},
    .forms = 1u << FORM_SORT,
    .offers = offers,
    .cost = cost,
    .lower = insertion_lower,
};
