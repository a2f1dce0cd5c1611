/* Which of the leaves that end are replaced by which that begin?  Each group must have the same sum on both sides, and
 * its leaves must be able to stand together.
 *
 * Few leaves: of all partitions into groups of equal sums, finest first, a tree takes those that it can.  Many: one
 * search covers the largest leaf that is left by the group that leaves the tree most freedom, with a few exceptions
 * (limited discrepancy search, Harvey and Ginsberg, IJCAI 1995); another combines up to four small groups.  What is in
 * no group is one group more. */
#include "plan/planar_search.h"

#define MOST_WAYS     60 /* of a tree, by partitions */
#define MOST_FOUND    32 /* of a tree, by searches: half of them by the first */
#define MOST_SETS     64
#define MOST_CHOICES  5
#define MOST_TRIED    24 /* groups of one leaf */
#define MOST_SKIPS    3
#define MOST_ENDS     60 /* of one search */
#define MOST_GROUPS   40
#define MOST_COMBINED 4
#define MOST_EVERY    11  /* leaves of which all subsets are tried */
#define MOST_REPLACED 400 /* for one tree, by each of the searches */

uint32_t plan_planar_group(const PlanarChange *change, const PlanarWay *way, uint32_t group, uint32_t *gone,
                           uint32_t *put, uint32_t *put_count)
{
    PlanarGroup used = {0, 0};
    for (uint32_t g = 0; g < way->group_count; g++) {
        used.gone |= way->group[g].gone;
        used.put |= way->group[g].put;
    }
    if (group == way->group_count) {
        *put_count = plan_planar_rest(&change->put, used.put, put);
        return plan_planar_rest(&change->gone, used.gone, gone);
    }
    *put_count = plan_planar_leaves(&change->put, way->group[group].put, put);
    return plan_planar_leaves(&change->gone, way->group[group].gone, gone);
}

typedef struct Search { /* of the ways of one tree */
    PlanarChange *change;
    Arena *arena; /* of what is found */
    Arena *stack;
    PlanarWays *ways;
    uint8_t *marked;      /* [leaf] */
    uint32_t *number;     /* [leaf]: 1 + that among what ends */
    uint32_t *gone, *put; /* room for the leaves of a group */
    PlanarGroup chosen[PLANAR_MASK];
    uint32_t chosen_count;
    PlanarGroup used; /* by those that are chosen */
    uint64_t left;    /* of what ends, for the last group */
    uint32_t found, most_found, ends, replaced;
} Search;

static void mark_leaves(Search *s, const uint32_t *leaf, uint32_t count, uint8_t mark)
{
    for (uint32_t k = 0; k < count; k++)
        s->marked[leaf[k]] = mark;
}

static bool replace_leaves(Search *s, const PqTree *tree, uint32_t gone, uint32_t put, PqTree *result)
{
    mark_leaves(s, s->gone, gone, 1);
    bool good = plan_pq_replace(s->stack, tree, s->marked, s->put, put, result);
    mark_leaves(s, s->gone, gone, 0);
    s->ways->looks += tree->count;
    return good;
}

static bool replace_group(Search *s, const PqTree *tree, PlanarGroup g, PqTree *result)
{
    return replace_leaves(s, tree, plan_planar_leaves(&s->change->gone, g.gone, s->gone),
                          plan_planar_leaves(&s->change->put, g.put, s->put), result);
}

static bool can_stand_together(Search *s, const PqTree *tree, uint64_t gone)
{
    uint32_t count = plan_planar_leaves(&s->change->gone, gone, s->gone);
    mark_leaves(s, s->gone, count, 1);
    bool good = count == 1 || plan_pq_together(s->stack, tree, s->marked);
    mark_leaves(s, s->gone, count, 0);
    s->ways->looks += tree->count;
    return good;
}

static void add_way(Search *s, const PqTree *tree)
{
    PlanarWay way = {.group_count = s->chosen_count};
    way.tree.count = tree->count;
    way.tree.node = arena_copy(s->arena, tree->node, sizeof *tree->node * tree->count);
    way.group = arena_copy(s->arena, s->chosen, sizeof *s->chosen * s->chosen_count);
    ARENA_PUSH(s->arena, s->ways->way, s->ways->count, s->ways->capacity, way);
    s->found++;
}

/* What is in no chosen group is the last. */
static void add_last_group(Search *s, const PqTree *tree)
{
    uint32_t gone = plan_planar_rest(&s->change->gone, s->used.gone, s->gone);
    uint32_t put = plan_planar_rest(&s->change->put, s->used.put, s->put);
    ArenaMark mark = arena_mark(s->stack);
    PqTree last = *tree;
    if ((!gone && !put) || (gone && put && replace_leaves(s, tree, gone, put, &last)))
        add_way(s, &last);
    arena_reset(s->stack, mark);
}

static void choose(Search *s, PlanarGroup g)
{
    s->chosen[s->chosen_count++] = g;
    s->used.gone |= g.gone;
    s->used.put |= g.put;
}

static void take_back(Search *s)
{
    PlanarGroup g = s->chosen[--s->chosen_count];
    s->used.gone &= ~g.gone;
    s->used.put &= ~g.put;
}

static void try_partition(Search *s, const PqTree *tree, const PlanarPartition *p)
{
    ArenaMark mark = arena_mark(s->stack);
    PqTree now = *tree;
    bool good = true;
    for (uint32_t g = 0; g < p->count && good; g++) {
        PqTree next;
        good = replace_group(s, &now, p->group[g], &next);
        now = next;
        choose(s, p->group[g]);
    }
    if (good)
        add_way(s, &now);
    while (s->chosen_count)
        take_back(s);
    arena_reset(s->stack, mark);
}

/* What cannot stand together in the tree is found out once. */
static void try_partitions(Search *s, const PqTree *tree)
{
    const PlanarChange *c = s->change;
    enum { UNKNOWN, YES, NO };
    uint8_t *together = ARENA_ARRAY(s->stack, uint8_t, planar_bit(c->gone.count));
    for (uint32_t k = 0; k < c->partition_count && s->found < MOST_WAYS; k++) {
        const PlanarPartition *p = &c->partition[k];
        bool can = true;
        for (uint32_t g = 0; g < p->count && can; g++) {
            uint8_t *known = &together[p->group[g].gone];
            if (*known == UNKNOWN)
                *known = can_stand_together(s, tree, p->group[g].gone) ? YES : NO;
            can = *known == YES;
        }
        if (can)
            try_partition(s, tree, p);
    }
}

/* Covering the largest */

typedef struct Sets { /* of what ends */
    uint64_t mask[MOST_SETS];
    uint32_t count;
} Sets;

static void add_set(Sets *sets, uint64_t mask)
{
    for (uint32_t k = 0; k < sets->count; k++)
        if (sets->mask[k] == mask)
            return;
    if (sets->count < MOST_SETS)
        sets->mask[sets->count++] = mask;
}

typedef struct Below { /* [node]: what is below it */
    uint64_t *open;    /* of what ends */
    uint8_t *full;     /* and nothing else */
} Below;

static void find_below(Search *s, const PqTree *tree, uint64_t open, Below *below)
{
    below->open = ARENA_ARRAY(s->stack, uint64_t, tree->count);
    below->full = ARENA_ARRAY(s->stack, uint8_t, tree->count);
    for (uint32_t n = tree->count; n-- > 0;) {
        const PqNode *node = &tree->node[n];
        uint32_t number = node->span == 1 ? s->number[node->leaf] : 0;
        below->open[n] = number ? planar_bit(number - 1) & open : 0;
        below->full[n] = node->span > 1 || below->open[n];
        for (uint32_t c = n + 1; c < n + node->span; c += tree->node[c].span) {
            below->open[n] |= below->open[c];
            below->full[n] &= below->full[c];
        }
    }
}

/* With full children of a P node, some and all of them. */
static void add_siblings(const uint32_t *child, uint32_t count, uint32_t own, const Below *below, Sets *sets)
{
    uint64_t with = below->open[child[own]], all = 0;
    for (uint32_t a = 0; a < count; a++)
        all |= below->full[child[a]] ? below->open[child[a]] : 0;
    add_set(sets, all);
    for (uint32_t a = 0; a < count; a++)
        if (below->full[child[a]])
            add_set(sets, with | below->open[child[a]]);
    for (uint32_t a = 0; a < count && planar_ones(all) <= 9; a++)
        for (uint32_t b = a + 1; b < count; b++)
            if (below->full[child[a]] && below->full[child[b]])
                add_set(sets, with | below->open[child[a]] | below->open[child[b]]);
}

/* All runs of full children of a Q node. */
static void add_runs(const uint32_t *child, uint32_t count, uint32_t own, const Below *below, Sets *sets)
{
    uint64_t left = 0;
    for (uint32_t a = own + 1; a-- > 0 && below->full[child[a]];) {
        uint64_t run = left |= below->open[child[a]];
        add_set(sets, run);
        for (uint32_t b = own + 1; b < count && below->full[child[b]]; b++)
            add_set(sets, run |= below->open[child[b]]);
    }
}

/* The subtrees with the pivot that are full, from the largest down; returns the node above these, or none when the
 * whole tree is. */
static bool add_subtrees(const PqTree *tree, const Below *below, uint64_t pivot, Sets *sets, uint32_t *above)
{
    bool found = false;
    for (uint32_t n = 0; tree->node[n].span > 1;) {
        uint32_t next = n + 1;
        if (below->full[n])
            add_set(sets, below->open[n]);
        while (!(below->open[next] & pivot))
            next += tree->node[next].span;
        if (!below->full[n] && below->full[next]) {
            *above = n;
            found = true;
        }
        n = next;
    }
    return found;
}

/* Sets with the pivot that may well stand together. */
static void find_sets(Search *s, const PqTree *tree, uint32_t pivot, Sets *sets)
{
    ArenaMark mark = arena_mark(s->stack);
    uint32_t ends = s->change->gone.count, above, count = 0, own = 0;
    uint64_t all = ends >= PLANAR_MASK ? UINT64_MAX : planar_bit(ends) - 1, open = all & ~s->used.gone & ~s->left;
    Below below;
    find_below(s, tree, open, &below);
    add_set(sets, planar_bit(pivot));
    if (add_subtrees(tree, &below, planar_bit(pivot), sets, &above)) {
        uint32_t *child = ARENA_ARRAY(s->stack, uint32_t, tree->node[above].span);
        for (uint32_t c = above + 1; c < above + tree->node[above].span; c += tree->node[c].span) {
            own = below.open[c] & planar_bit(pivot) ? count : own;
            child[count++] = c;
        }
        if (tree->node[above].leaf == PQ_P)
            add_siblings(child, count, own, &below, sets);
        else
            add_runs(child, count, own, &below, sets);
    }
    for (uint64_t rest = open & ~planar_bit(pivot); rest; rest &= rest - 1)
        add_set(sets, planar_bit(pivot) | planar_bit(planar_lowest(rest)));
    s->ways->looks += tree->count;
    arena_reset(s->stack, mark);
}

typedef struct Choice {
    PlanarGroup group;
    int64_t score;
} Choice;

/* Keeps the best; of equals the first. */
static void add_choice(Choice *choice, uint32_t *count, uint32_t most, Choice c)
{
    for (uint32_t k = 0; k < *count; k++)
        if (choice[k].group.gone == c.group.gone && choice[k].group.put == c.group.put)
            return;
    if (*count == most && choice[most - 1].score >= c.score)
        return;
    uint32_t at = *count < most ? (*count)++ : most - 1;
    for (; at > 0 && choice[at - 1].score < c.score; at--)
        choice[at] = choice[at - 1];
    choice[at] = c;
}

/* The groups with the pivot that leave most freedom, less a bit for every leaf in them. */
static uint32_t find_choices(Search *s, const PqTree *tree, uint32_t pivot, Choice *choice)
{
    Sets sets = {.count = 0};
    uint32_t count = 0, tried = 0;
    find_sets(s, tree, pivot, &sets);
    for (uint32_t k = 0; k < sets.count && tried < MOST_TRIED; k++) {
        const PlanarMatches *m =
            plan_planar_matches(&s->change->put, plan_planar_sum(s->change, &s->change->gone, sets.mask[k]));
        for (uint32_t j = 0; j < m->count && tried < MOST_TRIED; j++) {
            PlanarGroup g = {sets.mask[k], m->mask[j]};
            ArenaMark mark = arena_mark(s->stack);
            PqTree after;
            if (g.put & s->used.put)
                continue;
            if (!replace_group(s, tree, g, &after))
                break;
            int64_t freedom = (int64_t)plan_pq_freedom(&after);
            add_choice(choice, &count, MOST_CHOICES,
                       (Choice){g, freedom - 65536 * (int64_t)(planar_ones(g.gone) + planar_ones(g.put))});
            arena_reset(s->stack, mark);
            s->ways->looks += after.count;
            s->replaced++;
            tried++;
        }
    }
    return count;
}

static void cover(Search *s, const PqTree *tree, uint32_t skips);

static void cover_with(Search *s, const PqTree *tree, PlanarGroup g, uint32_t skips)
{
    ArenaMark mark = arena_mark(s->stack);
    PqTree after;
    if (replace_group(s, tree, g, &after)) {
        choose(s, g);
        cover(s, &after, skips);
        take_back(s);
    }
    arena_reset(s->stack, mark);
}

/* The largest that ends and is in no group; false when there is none. */
static bool find_pivot(const Search *s, uint32_t *pivot)
{
    const PlanarSide *gone = &s->change->gone;
    int64_t most = 0;
    for (uint32_t k = 0; k < gone->count && k < PLANAR_MASK; k++)
        if (!((s->used.gone | s->left) >> k & 1) && s->change->size[gone->leaf[k]] > most)
            most = s->change->size[gone->leaf[ *pivot = k]];
    return most > 0;
}

/* With exactly so many exceptions to the first choice; the last group is the second. */
static void cover(Search *s, const PqTree *tree, uint32_t skips)
{
    uint32_t pivot;
    if (s->ends > MOST_ENDS || s->found >= s->most_found || s->replaced > MOST_REPLACED)
        return;
    if (!find_pivot(s, &pivot)) {
        if (!skips)
            add_last_group(s, tree);
        s->ends++;
        return;
    }
    Choice choice[MOST_CHOICES];
    uint32_t count = find_choices(s, tree, pivot, choice);
    if (count)
        cover_with(s, tree, choice[0].group, skips);
    if (!count || skips) {
        s->left |= planar_bit(pivot);
        cover(s, tree, skips - (count > 0));
        s->left &= ~planar_bit(pivot);
    }
    for (uint32_t k = 1; k < count && k + 1 <= skips; k++)
        cover_with(s, tree, choice[k].group, skips - k - 1);
}

/* Combining small groups */

static void add_matches(Search *s, const PqTree *tree, uint64_t gone, const PlanarMatches *m, Choice *choice,
                        uint32_t *count)
{
    if (m->count && can_stand_together(s, tree, gone))
        for (uint32_t k = 0; k < m->count; k++)
            add_choice(choice, count, MOST_GROUPS,
                       (Choice){{gone, m->mask[k]}, -(int64_t)(planar_ones(gone) + planar_ones(m->mask[k]))});
}

/* The smallest groups that there are, from all subsets of the side with fewer leaves where these are few. */
static uint32_t list_groups(Search *s, const PqTree *tree, Choice *choice)
{
    PlanarChange *c = s->change;
    uint32_t count = 0;
    if (c->put.count <= MOST_EVERY && c->put.count < c->gone.count) {
        for (uint64_t put = 1; put < planar_bit(c->put.count); put++) {
            const PlanarMatches *m = plan_planar_matches(&c->gone, plan_planar_sum(c, &c->put, put));
            for (uint32_t k = 0; k < m->count; k++)
                if (can_stand_together(s, tree, m->mask[k]))
                    add_choice(choice, &count, MOST_GROUPS,
                               (Choice){{m->mask[k], put}, -(int64_t)(planar_ones(m->mask[k]) + planar_ones(put))});
        }
        return count;
    }
    if (c->gone.count <= MOST_EVERY) {
        for (uint64_t gone = 1; gone < planar_bit(c->gone.count); gone++)
            add_matches(s, tree, gone, plan_planar_matches(&c->put, plan_planar_sum(c, &c->gone, gone)), choice,
                        &count);
        return count;
    }
    for (uint32_t pivot = 0; pivot < c->gone.count && pivot < PLANAR_MASK; pivot++) {
        Sets sets = {.count = 0};
        find_sets(s, tree, pivot, &sets);
        for (uint32_t k = 0; k < sets.count; k++)
            if (planar_lowest(sets.mask[k]) == pivot || planar_ones(sets.mask[k]) > 2) /* pairs come from one side */
                add_matches(s, tree, sets.mask[k],
                            plan_planar_matches(&c->put, plan_planar_sum(c, &c->gone, sets.mask[k])), choice, &count);
    }
    return count;
}

/* So many more of the groups from `first` on. */
static void combine(Search *s, const PqTree *tree, const Choice *choice, uint32_t count, uint32_t first, uint32_t more)
{
    for (uint32_t k = first; k < count && s->replaced < MOST_REPLACED && s->found < s->most_found; k++) {
        PlanarGroup g = choice[k].group;
        ArenaMark mark = arena_mark(s->stack);
        PqTree after;
        if ((g.gone & s->used.gone) || (g.put & s->used.put))
            continue;
        s->replaced++;
        if (replace_group(s, tree, g, &after)) {
            choose(s, g);
            if (more == 1)
                add_last_group(s, &after);
            else
                combine(s, &after, choice, count, k + 1, more - 1);
            take_back(s);
        }
        arena_reset(s->stack, mark);
    }
}

static void search(Search *s, const PqTree *tree)
{
    Choice choice[MOST_GROUPS];
    s->most_found = MOST_FOUND / 2;
    for (uint32_t skips = 0; skips <= MOST_SKIPS; skips++)
        cover(s, tree, skips);
    uint32_t count = list_groups(s, tree, choice);
    s->most_found = MOST_FOUND;
    s->replaced = 0;
    for (uint32_t groups = 1; groups <= MOST_COMBINED; groups++)
        combine(s, tree, choice, count, 0, groups);
}

void plan_planar_ways(Arena *arena, PlanarChange *change, const PqTree *tree, uint32_t leaf_count, PlanarWays *ways)
{
    Arena stack = {0};
    Search s = {.change = change, .arena = arena, .stack = &stack, .ways = ways};
    s.marked = ARENA_ARRAY(&stack, uint8_t, leaf_count);
    s.number = ARENA_ARRAY(&stack, uint32_t, leaf_count);
    s.gone = ARENA_ARRAY(&stack, uint32_t, change->gone.count);
    s.put = ARENA_ARRAY(&stack, uint32_t, change->put.count);
    for (uint32_t k = 0; k < change->gone.count && k < PLANAR_MASK; k++)
        s.number[change->gone.leaf[k]] = k + 1;
    if (change->partition_count) {
        try_partitions(&s, tree);
    } else {
        add_last_group(&s, tree);
        if (change->gone.count > 1 && change->put.count > 1)
            search(&s, tree);
    }
    arena_free(&stack);
}
