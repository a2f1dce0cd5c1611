/* Which items of a perfect packing lie beside each other can be told from their sizes.
 *
 * Rows: blocks that end where others begin, and are as high, are one block; either side may be a stack of some blocks
 * of one life.  Wheels: five blocks around each other, of which no two are a row or a stack,
 *
 *      d | q q
 *      d | e | b        d = e + q,  b = p + e
 *      p   p | b
 *
 * The fewer blocks a join chooses the less it is an accident; so joins of two and wheels come first, and again after
 * each other join.  An accident leaves much that fits nothing.  It will mostly be among the blocks that went no
 * further, and the lower the likelier: these are refused, one after another, as long as less is left. */
#include "plan/blocks.h"

#include <string.h>

#include "plan/sort.h"

#define NONE         UINT32_MAX
#define MOST_JOIN    6  /* blocks that a row chooses */
#define MOST_STACK   3  /* that one side of it chooses */
#define MOST_MATES   24 /* of one life that are looked at */
#define MOST_SIDE    64 /* that begin, or end, together */
#define MOST_REFUSED 64

typedef struct Block {
    uint32_t lower, upper; /* sections */
    int64_t size;
    uint32_t within; /* the block that it has been joined to, or NONE */
    int64_t at;      /* its offset in there */
    uint64_t join;   /* the join that it is of; 0: none, or a wheel */
} Block;

typedef struct List { /* of blocks; those that are joined are dropped when it is read */
    uint32_t *block, count, capacity;
} List;

typedef struct Stack { /* of blocks of one life */
    uint32_t block[MOST_MATES], count;
    uint32_t chosen; /* of those of the life: all count as two, all but one as three */
    int64_t size;
} Stack;

typedef struct Stacks {
    Stack *stack;
    uint32_t count, capacity;
} Stacks;

typedef struct Join {
    Arena *arena, scratch;
    Block *block;
    uint32_t count, capacity;
    List *begin, *end;        /* [section] */
    List todo[MOST_JOIN + 2]; /* sections at which joins of so many blocks are to be looked for */
    uint8_t *level;           /* [section]: the list that it is in; 0: none */
    Stacks left, right;       /* at the section that is looked at */
    uint32_t rest;            /* blocks, when all is done */
    uint64_t looks;
    uint64_t refused[MOST_REFUSED]; /* joins */
    uint32_t refused_count;
} Join;

static void push(Join *j, List *list, uint32_t value)
{
    ARENA_PUSH(j->arena, list->block, list->count, list->capacity, value);
}

static void look_again(Join *j, uint32_t section, uint8_t level)
{
    j->level[section] = level;
    if (level <= MOST_JOIN)
        push(j, &j->todo[level], section);
}

static uint32_t new_block(Join *j, uint32_t lower, uint32_t upper, int64_t size)
{
    ARENA_PUSH(j->arena, j->block, j->count, j->capacity, ((Block){lower, upper, size, NONE, 0, 0}));
    push(j, &j->begin[lower], j->count - 1);
    push(j, &j->end[upper], j->count - 1);
    look_again(j, lower, 2);
    look_again(j, upper, 2);
    return j->count - 1;
}

static void put_within(Join *j, uint32_t block, uint32_t whole, int64_t at)
{
    j->block[block].within = whole;
    j->block[block].at = at;
}

static void put_stack(Join *j, const Stack *stack, uint32_t whole)
{
    int64_t at = 0;
    for (uint32_t k = 0; k < stack->count; at += j->block[stack->block[k++]].size)
        put_within(j, stack->block[k], whole, at);
}

/* Drops what has been joined. */
static const List *current(Join *j, List *list)
{
    uint32_t count = 0;
    j->looks += list->count;
    for (uint32_t k = 0; k < list->count; k++)
        if (j->block[list->block[k]].within == NONE)
            list->block[count++] = list->block[k];
    list->count = count;
    return list;
}

/* All stacks of up to `most` of these blocks of one life, on top of one. */
static void add_stacks(Join *j, Stacks *stacks, const uint32_t *mate, uint32_t count, uint32_t most, Stack below)
{
    for (uint32_t k = 0; k < count; k++) {
        Stack stack = below;
        stack.block[stack.count++] = mate[k];
        stack.chosen = stack.count;
        stack.size += j->block[mate[k]].size;
        ARENA_PUSH(&j->scratch, stacks->stack, stacks->count, stacks->capacity, stack);
        if (stack.count < most)
            add_stacks(j, stacks, mate + k + 1, count - k - 1, most, stack);
    }
}

static void add_whole(Join *j, Stacks *stacks, const uint32_t *mate, uint32_t count)
{
    Stack stack = {.count = count, .chosen = 2};
    for (uint32_t k = 0; k < count; k++) {
        stack.block[k] = mate[k];
        stack.size += j->block[mate[k]].size;
    }
    ARENA_PUSH(&j->scratch, stacks->stack, stacks->count, stacks->capacity, stack);
    for (uint32_t k = 0; count > 3 && k < count; k++) {
        Stack but = stack;
        but.size -= j->block[mate[k]].size;
        but.block[k] = but.block[--but.count];
        but.chosen = 3;
        ARENA_PUSH(&j->scratch, stacks->stack, stacks->count, stacks->capacity, but);
    }
}

/* All stacks of the blocks of a list, which begin, or end, together. */
static void list_stacks(Join *j, const List *list, uint32_t most, Stacks *stacks)
{
    SortKey key[MOST_SIDE];
    uint32_t count = list->count < MOST_SIDE ? list->count : MOST_SIDE;
    for (uint32_t k = 0; k < count; k++) {
        const Block *b = &j->block[list->block[k]];
        key[k] = (SortKey){(uint64_t)b->lower << 32 | b->upper, list->block[k]};
    }
    sort_ascending(&j->scratch, key, count);
    stacks->count = 0;
    for (uint32_t k = 0, n; k < count; k = n) {
        uint32_t mate[MOST_MATES], mates = 0;
        for (n = k; n < count && key[n].key == key[k].key; n++)
            if (mates < MOST_MATES)
                mate[mates++] = key[n].index;
        add_stacks(j, stacks, mate, mates, most, (Stack){0});
        if (mates > 2 && most >= 2)
            add_whole(j, stacks, mate, mates);
    }
    j->looks += stacks->count;
}

/* What tells one join from others. */
static uint64_t join_of(const Join *j, const Stack *left, const Stack *right)
{
    const Block *l = &j->block[left->block[0]], *r = &j->block[right->block[0]];
    uint64_t hash = ((uint64_t)l->lower << 32 | l->upper) * UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash ^ hash >> 29 ^ r->upper) * UINT64_C(0xbf58476d1ce4e5b9);
    return (hash ^ hash >> 32 ^ (uint64_t)left->size) * UINT64_C(0x94d049bb133111eb) | 1;
}

static bool refused(const Join *j, uint64_t join)
{
    for (uint32_t k = 0; k < j->refused_count; k++)
        if (j->refused[k] == join)
            return true;
    return false;
}

static bool join_row(Join *j, const Stack *left, const Stack *right)
{
    uint64_t join = join_of(j, left, right);
    if (refused(j, join))
        return false;
    uint32_t lower = j->block[left->block[0]].lower, upper = j->block[right->block[0]].upper;
    uint32_t whole = new_block(j, lower, upper, left->size);
    put_stack(j, left, whole);
    put_stack(j, right, whole);
    j->block[whole].join = join;
    return true;
}

/* Joins a row of so many blocks on both sides of the time. */
static bool find_row(Join *j, uint32_t section, uint32_t many)
{
    uint32_t most = many - 1 < MOST_STACK ? many - 1 : MOST_STACK;
    list_stacks(j, current(j, &j->end[section]), most, &j->left);
    list_stacks(j, current(j, &j->begin[section]), most, &j->right);
    j->looks += (uint64_t)j->left.count * j->right.count;
    for (uint32_t a = 0; a < j->left.count; a++)
        for (uint32_t b = 0; b < j->right.count; b++) {
            const Stack *left = &j->left.stack[a], *right = &j->right.stack[b];
            if (left->size == right->size && left->chosen + right->chosen == many && join_row(j, left, right))
                return true;
        }
    return false;
}

/* The block of a life and a size, or NONE. */
static uint32_t find_block(Join *j, uint32_t lower, uint32_t upper, int64_t size)
{
    const List *list = current(j, &j->begin[lower]);
    for (uint32_t k = 0; k < list->count; k++)
        if (j->block[list->block[k]].upper == upper && j->block[list->block[k]].size == size)
            return list->block[k];
    return NONE;
}

static void join_wheel(Join *j, uint32_t e, uint32_t p, uint32_t q, uint32_t d, uint32_t b)
{
    int64_t below = j->block[p].size, centre = j->block[e].size;
    uint32_t whole = new_block(j, j->block[p].lower, j->block[q].upper, below + centre + j->block[q].size);
    put_within(j, p, whole, 0);
    put_within(j, b, whole, 0);
    put_within(j, d, whole, below);
    put_within(j, e, whole, below);
    put_within(j, q, whole, below + centre);
}

static bool find_wheel(Join *j, uint32_t e)
{
    uint32_t x0 = j->block[e].lower, x1 = j->block[e].upper;
    int64_t centre = j->block[e].size;
    const List *below = current(j, &j->end[x1]), *above = current(j, &j->begin[x0]);
    for (uint32_t m = 0; m < below->count; m++) {
        const Block *p = &j->block[below->block[m]];
        for (uint32_t n = 0; n < above->count && p->lower < x0; n++) {
            const Block *q = &j->block[above->block[n]];
            j->looks++;
            if (q->upper <= x1)
                continue;
            uint32_t d = find_block(j, p->lower, x0, centre + q->size);
            uint32_t b = d == NONE ? NONE : find_block(j, x1, q->upper, centre + p->size);
            if (b == NONE)
                continue;
            join_wheel(j, e, below->block[m], above->block[n], d, b);
            return true;
        }
    }
    return false;
}

/* Joins a wheel whose centre begins or ends here. */
static bool find_wheels(Join *j, uint32_t section)
{
    const List *sides[2] = {current(j, &j->end[section]), current(j, &j->begin[section])};
    for (uint32_t side = 0; side < 2; side++)
        for (uint32_t k = 0; k < sides[side]->count; k++)
            if (find_wheel(j, sides[side]->block[k]))
                return true;
    return false;
}

/* The fewest blocks come first; a join brings what is there back to two. */
static void join_all(Join *j, uint64_t looks)
{
    for (uint8_t many = 2; many <= MOST_JOIN && j->looks < looks;) {
        List *todo = &j->todo[many];
        if (!todo->count) {
            many++;
            continue;
        }
        uint32_t section = todo->block[--todo->count];
        if (j->level[section] != many)
            continue;
        j->looks++;
        bool found = find_row(j, section, many) || (many == 2 && find_wheels(j, section));
        look_again(j, section, found ? 2 : (uint8_t)(many + 1));
        if (found)
            many = 2;
    }
}

/* Joins what it can from the start; what is refused stays so. */
static void join_anew(Join *j, Arena *arena, const PlanItems *items, uint64_t looks)
{
    size_t sections = (size_t)items->section_count + 1;
    Join fresh = {.arena = arena, .refused_count = j->refused_count};
    memcpy(fresh.refused, j->refused, sizeof j->refused);
    *j = fresh;
    j->begin = ARENA_ARRAY(arena, List, sections);
    j->end = ARENA_ARRAY(arena, List, sections);
    j->level = ARENA_ARRAY(arena, uint8_t, sections);
    for (uint32_t i = 0; i < items->count; i++) {
        const PlanPiece *piece = &items->piece[items->item[i].piece];
        new_block(j, piece->lower, piece->upper, items->item[i].size);
    }
    join_all(j, looks);
    arena_free(&j->scratch);
    j->looks += items->count;
    for (uint32_t b = 0; b < j->count; b++)
        j->rest += j->block[b].within == NONE;
}

/* The rows that went no further, lowest first. */
static uint32_t list_doubts(Arena *arena, const Join *j, SortKey *doubt)
{
    uint32_t count = 0;
    for (uint32_t b = 0; b < j->count; b++)
        if (j->block[b].within == NONE && j->block[b].join)
            doubt[count++] = (SortKey){(uint64_t)j->block[b].size, b};
    sort_ascending(arena, doubt, count);
    return count;
}

/* Refuses one join more if that leaves less; false when there is none. */
static bool refuse_one(Arena *arena, const PlanItems *items, uint64_t *looks, Join *best)
{
    ArenaMark mark = arena_mark(arena);
    SortKey *doubt = ARENA_ARRAY(arena, SortKey, best->count);
    uint32_t count = list_doubts(arena, best, doubt);
    for (uint32_t k = 0; k < count && *looks; k++) {
        Arena trial = {0};
        Join j = *best;
        j.refused[j.refused_count++] = best->block[doubt[k].index].join;
        join_anew(&j, &trial, items, *looks);
        *looks -= j.looks < *looks ? j.looks : *looks;
        arena_free(&trial);
        if (j.rest >= best->rest)
            continue;
        arena_reset(arena, mark);
        *best = j;
        join_anew(best, arena, items, UINT64_MAX);
        return true;
    }
    arena_reset(arena, mark);
    return false;
}

/* What is left becomes the buffers. */
static void write_blocks(Arena *arena, const Join *j, const PlanItems *items, PlanBlocks *blocks)
{
    PlanBuffer *buffer = ARENA_ARRAY(arena, PlanBuffer, j->count);
    uint32_t *number = ARENA_ARRAY(arena, uint32_t, j->count), count = 0;
    for (uint32_t b = 0; b < j->count; b++) {
        number[b] = count;
        if (j->block[b].within == NONE)
            buffer[count++] =
                (PlanBuffer){j->block[b].size, items->unit, j->block[b].lower, j->block[b].upper, PLAN_FREE, 0, 0};
    }
    for (uint32_t i = 0; i < items->count; i++) {
        uint32_t b = i;
        for (blocks->at[i] = 0; j->block[b].within != NONE; b = j->block[b].within)
            blocks->at[i] += j->block[b].at;
        blocks->block[i] = number[b];
    }
    blocks->problem = (PlanProblem){.buffer = buffer, .count = count};
}

void plan_blocks(Arena *arena, const PlanItems *items, uint64_t looks, PlanBlocks *blocks)
{
    Arena scratch = {0};
    Join best = {0};
    blocks->block = ARENA_ARRAY(arena, uint32_t, items->count);
    blocks->at = ARENA_ARRAY(arena, int64_t, items->count);
    join_anew(&best, &scratch, items, looks);
    looks -= best.looks < looks ? best.looks : looks;
    while (best.rest > 1 && best.rest <= items->count / 2 && best.refused_count < MOST_REFUSED - 1 &&
           refuse_one(&scratch, items, &looks, &best))
        ;
    write_blocks(arena, &best, items, blocks);
    arena_free(&scratch);
}
