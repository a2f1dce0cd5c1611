#include "kernel/loop/index.h"

#include "base/number.h"

Index index_constant(int64_t value)
{
    return (Index){.constant = value};
}

static Index from_atom(Arena *arena, const Atom *atom)
{
    Term *term = ARENA_NEW(arena, Term);
    *term = (Term){1, arena_copy(arena, atom, sizeof *atom)};
    return (Index){0, 1, term};
}

Index index_var(Arena *arena, const Var *var)
{
    if (var->low == var->high)
        return index_constant(var->low);
    return from_atom(arena, &(Atom){.kind = ATOM_VAR, .var = var, .low = var->low, .high = var->high});
}

Index index_data(Arena *arena, const struct Expr *data, int64_t low, int64_t high)
{
    return from_atom(arena, &(Atom){.kind = ATOM_DATA, .data = data, .low = low, .high = high});
}

int64_t index_low(Index a)
{
    int64_t low = a.constant;
    for (uint32_t i = 0; i < a.count; i++)
        low += a.term[i].factor * (a.term[i].factor > 0 ? a.term[i].atom->low : a.term[i].atom->high);
    return low;
}

int64_t index_high(Index a)
{
    int64_t high = a.constant;
    for (uint32_t i = 0; i < a.count; i++)
        high += a.term[i].factor * (a.term[i].factor > 0 ? a.term[i].atom->high : a.term[i].atom->low);
    return high;
}

static bool atom_eq(const Atom *a, const Atom *b)
{
    if (a == b)
        return true;
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case ATOM_VAR:
        return a->var == b->var;
    case ATOM_DATA:
        return a->data == b->data;
    case ATOM_DIV:
    case ATOM_MOD:
        return a->divisor == b->divisor && index_eq(a->index, b->index);
    }
    return false;
}

static bool has_term(const Index *index, const Term *term)
{
    for (uint32_t i = 0; i < index->count; i++)
        if (index->term[i].factor == term->factor && atom_eq(index->term[i].atom, term->atom))
            return true;
    return false;
}

/* The order of terms is that in which they came together; an atom is in one of them only. */
bool index_eq(Index a, Index b)
{
    if (a.constant != b.constant || a.count != b.count)
        return false;
    for (uint32_t i = 0; i < a.count; i++)
        if (!has_term(&b, &a.term[i]))
            return false;
    return true;
}

/* Is quotient == e / divisor for rest == e % divisor, where e may be a quotient itself? */
static bool same_quotient(const Atom *quotient, const Atom *rest)
{
    if (quotient->divisor == rest->divisor && index_eq(rest->index, quotient->index))
        return true;
    const Index *e = &rest->index;
    return !e->constant && e->count == 1 && e->term->factor == 1 && e->term->atom->kind == ATOM_DIV &&
           quotient->divisor == e->term->atom->divisor * rest->divisor &&
           index_eq(e->term->atom->index, quotient->index);
}

/* factor * divisor * (e / divisor) + factor * (e % divisor) is factor * e. */
static bool join_quotient(Arena *arena, Index *sum)
{
    for (uint32_t i = 0; i < sum->count; i++) {
        const Atom *quotient = sum->term[i].atom;
        if (quotient->kind != ATOM_DIV)
            continue;
        for (uint32_t j = 0; j < sum->count; j++) {
            const Atom *rest = sum->term[j].atom;
            if (rest->kind != ATOM_MOD || sum->term[i].factor != sum->term[j].factor * rest->divisor ||
                !same_quotient(quotient, rest))
                continue;
            Term *left = ARENA_ARRAY(arena, Term, sum->count);
            uint32_t count = 0;
            for (uint32_t k = 0; k < sum->count; k++)
                if (k != i && k != j)
                    left[count++] = sum->term[k];
            *sum = index_add(arena, (Index){sum->constant, count, left},
                             index_scale(arena, rest->index, sum->term[j].factor));
            return true;
        }
    }
    return false;
}

Index index_add(Arena *arena, Index a, Index b)
{
    Term *term = ARENA_ARRAY(arena, Term, a.count + b.count);
    uint32_t count = 0;

    for (uint32_t i = 0; i < a.count; i++)
        term[count++] = a.term[i];
    for (uint32_t i = 0; i < b.count; i++) {
        uint32_t at = 0;
        while (at < count && !atom_eq(term[at].atom, b.term[i].atom))
            at++;
        if (at < count)
            term[at].factor += b.term[i].factor;
        else
            term[count++] = b.term[i];
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++)
        if (term[i].factor)
            term[kept++] = term[i];
    Index sum = {a.constant + b.constant, kept, term};
    join_quotient(arena, &sum);
    return sum;
}

Index index_scale(Arena *arena, Index a, int64_t factor)
{
    if (factor == 0)
        return index_constant(0);
    if (factor == 1)
        return a;
    Term *term = ARENA_ARRAY(arena, Term, a.count);
    for (uint32_t i = 0; i < a.count; i++)
        term[i] = (Term){a.term[i].factor * factor, a.term[i].atom};
    return (Index){a.constant * factor, a.count, term};
}

/* a == divisor * quotient + rest, with all of a that the divisor divides in the quotient. */
static void cut(Arena *arena, Index a, int64_t divisor, Index *quotient, Index *rest)
{
    Term *whole = ARENA_ARRAY(arena, Term, a.count), *part = ARENA_ARRAY(arena, Term, a.count);
    int64_t remainder = ((a.constant % divisor) + divisor) % divisor;
    *quotient = (Index){(a.constant - remainder) / divisor, 0, whole};
    *rest = (Index){remainder, 0, part};
    for (uint32_t i = 0; i < a.count; i++)
        if (a.term[i].factor % divisor == 0)
            whole[quotient->count++] = (Term){a.term[i].factor / divisor, a.term[i].atom};
        else
            part[rest->count++] = a.term[i];
}

/* Of g * coarse + fine with g dividing `divisor` and 0 <= fine < g: the quotient does not see fine. */
static bool split_fine(Arena *arena, Index a, int64_t divisor, int64_t *g, Index *coarse, Index *fine)
{
    for (uint32_t i = 0; i < a.count; i++) {
        *g = number_gcd(divisor, a.term[i].factor < 0 ? -a.term[i].factor : a.term[i].factor);
        if (*g < 2 || *g >= divisor)
            continue;
        cut(arena, a, *g, coarse, fine);
        if (index_low(*fine) >= 0 && index_high(*fine) < *g && index_low(*coarse) >= 0)
            return true;
    }
    return false;
}

/* (x / a) / b is x / (a * b). */
static bool nested_quotient(Index a, int64_t divisor, Atom *joined)
{
    if (a.constant || a.count != 1 || a.term->factor != 1 || a.term->atom->kind != ATOM_DIV)
        return false;
    *joined = *a.term->atom;
    joined->divisor *= divisor;
    return true;
}

Index index_div(Arena *arena, Index a, int64_t divisor)
{
    if (divisor == 1)
        return a;
    Index quotient, rest;
    Atom atom = {.kind = ATOM_DIV, .divisor = divisor};
    cut(arena, a, divisor, &quotient, &rest);
    if (index_low(rest) >= 0 && index_high(rest) < divisor)
        return quotient;
    if (index_low(rest) < 0) { /* keep the operand of C's division non-negative */
        quotient = index_constant(0);
        rest = a;
    }
    int64_t g;
    Index coarse, fine;
    if (split_fine(arena, rest, divisor, &g, &coarse, &fine))
        return index_add(arena, quotient, index_div(arena, coarse, divisor / g));
    atom.index = rest;
    nested_quotient(rest, divisor, &atom);
    atom.low = index_low(atom.index) / atom.divisor;
    atom.high = index_high(atom.index) / atom.divisor;
    return index_add(arena, quotient, from_atom(arena, &atom));
}

Index index_mod(Arena *arena, Index a, int64_t divisor)
{
    if (divisor == 1)
        return index_constant(0);
    Index quotient, rest;
    cut(arena, a, divisor, &quotient, &rest);
    if (index_low(rest) >= 0 && index_high(rest) < divisor)
        return rest;
    if (index_low(rest) < 0)
        rest = a;
    int64_t g;
    Index coarse, fine;
    if (split_fine(arena, rest, divisor, &g, &coarse, &fine))
        return index_add(arena, index_scale(arena, index_mod(arena, coarse, divisor / g), g), fine);
    Atom atom = {.kind = ATOM_MOD, .index = rest, .divisor = divisor, .low = 0, .high = divisor - 1};
    return from_atom(arena, &atom);
}

Index index_flatten(Arena *arena, const Index *position, const int64_t *dim, uint32_t rank)
{
    Index flat = index_constant(0);
    for (uint32_t i = 0; i < rank; i++)
        flat = index_add(arena, index_scale(arena, flat, dim[i]), position[i]);
    return flat;
}

void index_unflatten(Arena *arena, Index flat, const int64_t *dim, uint32_t rank, Index *position)
{
    uint32_t first = 0; /* dimension of more than one position: what is left for it is in range */
    while (first + 1 < rank && dim[first] == 1)
        position[first++] = index_constant(0);
    for (uint32_t i = rank; i-- > first + 1;) {
        int64_t extent = dim[i] ? dim[i] : 1; /* of what is empty nobody reads an element */
        position[i] = index_mod(arena, flat, extent);
        flat = index_div(arena, flat, extent);
    }
    if (rank)
        position[first] = flat;
}
