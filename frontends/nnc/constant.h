/* Compile-time constants: what attributes, extents and repetition counts are made of. */
#ifndef NNC_FRONTENDS_NNC_CONSTANT_H
#define NNC_FRONTENDS_NNC_CONSTANT_H

#include "ir/graph.h"

typedef enum ConstKind { C_NONE, C_BOOL, C_INT, C_FLOAT, C_STRING, C_DTYPE, C_LIST } ConstKind;

typedef struct Const Const;
struct Const {
    ConstKind kind;
    uint32_t count, depth; /* of LIST; depth 1 is a list of scalars */
    union {
        int64_t i; /* BOOL, INT, DTYPE */
        double f;
        Str s;
        const Const *item; /* LIST */
    };
};

#define CONST_LIST_MOST   65536 /* items of a list made by an operator */
#define CONST_DEPTH_MOST  16    /* nesting of lists */
#define CONST_STRING_MOST 65536 /* bytes */

static inline Const const_int(int64_t i)
{
    return (Const){.kind = C_INT, .i = i};
}
static inline Const const_float(double f)
{
    return (Const){.kind = C_FLOAT, .f = f};
}
static inline Const const_bool(bool b)
{
    return (Const){.kind = C_BOOL, .i = b};
}
static inline bool const_is_number(const Const *c)
{
    return c->kind == C_INT || c->kind == C_FLOAT;
}
static inline double const_number(const Const *c)
{
    return c->kind == C_FLOAT ? c->f : (double)c->i;
}
/* Is const_number of it the same number?  Not of most integers beyond 53 bits. */
static inline bool const_is_double(const Const *c)
{
    double number = const_number(c);
    return c->kind == C_FLOAT || (number < 0x1p63 && (int64_t)number == c->i);
}

bool const_eq(const Const *a, const Const *b);
void const_print(Text *out, const Const *c); /* as .nnc text */
Str const_show(Arena *arena, const Const *c);
const char *const_kind_name(ConstKind kind); /* "an integer", ... */

/* Shortest decimal text that gives the same element again; with a point or exponent for floats. */
void const_print_number(Text *out, DType dtype, double number);
/* Element `index` of a tensor, exact for every dtype. */
void const_print_element(Text *out, const Tensor *tensor, int64_t index);

/* Does the constant exist in this dtype? Floats round; integers must fit; bool takes only true and false. */
bool const_fits(const Const *c, DType dtype);
void const_set_element(Tensor *tensor, int64_t index, const Const *c);
DType const_default_dtype(const Const *c); /* f32, i64 or bool; of lists f32 with any float, else by their first leaf */
/* The shape of a rectangular nested list; false when ragged, too deep or not of numbers. */
bool const_shape(const Const *c, Shape *shape);

#endif
