/* Which kernels one function serves: those of equal text but for constants of their loops, where a few parameters say
 * them all.  A parameter stands for constants that differ in the same way: an end of loops over one variable, or a
 * distance, and with it multiples of the distance and places a few elements behind them. */
#ifndef NNC_C_SHARING_H
#define NNC_C_SHARING_H

#include "c/constants.h"

#define MOST_PARAMETERS 8

typedef struct Parameter { /* of a function */
    Str name;
    uint32_t constant; /* as an argument it is what this constant of the caller's kernel is */
    const char *type;  /* of a float; NULL: a position */
} Parameter;

typedef struct Following { /* of a constant: times * a parameter + plus; times 0: all kernels have the same */
    uint32_t parameter;
    int64_t times, plus;
} Following;

typedef struct Sharing { /* of a function: how the constants of its kernels follow from parameters */
    Parameter *parameter;
    uint32_t count;
    Following *follows; /* per constant */
    const Str *written; /* the same as C, empty where it is the number; NULL: there are no parameters */
} Sharing;

/* Of `kernels` lists of `count` constants each.  False where they take more than MOST_PARAMETERS. */
bool sharing_find(Arena *arena, const Constant *const *kernel, uint32_t kernels, uint32_t count, Sharing *sharing);
/* Do the parameters of kernels like `first` say one more, as sharing_find would find of all? */
bool sharing_fits(const Sharing *sharing, const Constant *first, const Constant *kernel, uint32_t count);
/* Names the parameters, by what they are, unlike those that are taken; and writes the constants by them. */
void sharing_name(Arena *arena, const Constant *first, uint32_t count, const Str *taken, uint32_t taken_count,
                  Sharing *sharing);

#endif
