/* Kernels under the roofs of the machine: what they take, beside the least that it allows.
 *
 * A kernel of work w (its operations, those of functions such as exp included) that moves b bytes takes at least w /
 * peak seconds, and b / bandwidth, of the level of memory that its bytes fit in: the roof is the greater of the two,
 * and its share the roof by the time taken.  Weights that a run reads once come
 * as fast as memory of the size of all weights and the arena is read, since the run before has left them there. (Samuel
 * Williams, Andrew Waterman, David Patterson: Roofline, CACM 52(4), 2009.)  Bytes are those that must be moved: of what
 * is read and what is written, each once.  Winograd's algorithm does less than the operations of the text, which count,
 * and what the kernel before has left in a nearer level comes faster: shares above 100 % are no error. */
#ifndef NNC_CLI_ROOFLINE_H
#define NNC_CLI_ROOFLINE_H

#include "cli/bandwidth.h"
#include "cli/counts.h"
#include "program/entry.h"

typedef enum Bound { BOUND_COMPUTE, BOUND_LEVEL, BOUND_OVERHEAD } Bound;

typedef struct RoofRow {
    const Kernel *kernel;
    uint32_t number;
    int64_t calls;
    double second, share;   /* of a run: all its rounds; of the run */
    double flops, bytes;    /* of all rounds */
    double work;            /* flops, with functions as the operations of their texts */
    double weights;         /* bytes of these that are weights, of the only round; 0: of several rounds */
    const Level *level;     /* that most of the bytes' time goes to */
    double roof;            /* least seconds / seconds */
    Bound bound;            /* overhead: it is so short that calls, and the begins and ends of loops, are what it is */
    const Counted *counted; /* NULL: none */
} RoofRow;

typedef struct Roofline {
    Str model;
    const char *target;
    uint32_t runs;
    double peak, second; /* operations a second; of all kernels */
    const Levels *levels;
    RoofRow *row;
    uint32_t count;
    const char *uncounted; /* why nothing is counted; NULL: it is */
} Roofline;

/* Fills in level, roof and bound of a row. */
void roofline_place(const Roofline *roofline, RoofRow *row);
const char *roofline_bound(const RoofRow *row); /* compute, L1, ..., memory, overhead */
/* Bytes that a call must move: scratch is none of them. */
int64_t roofline_bytes(const Entry *entry, const Kernel *kernel);
int64_t roofline_weights(const Entry *entry, const Kernel *kernel); /* of these those that no run changes */

/* Amounts in units that suit them, three digits: "17.2 us", "312 ns"; "12.3 G", "512 M". */
const char *roofline_seconds(char buffer[32], double second);
const char *roofline_amount(char buffer[32], double amount);

void roofline_print_table(Text *out, const Roofline *roofline);
void roofline_print_json(Text *out, const Roofline *roofline);
void roofline_print_svg(Text *out, const Roofline *roofline);
void roofline_print_html(Text *out, const Roofline *roofline);

#endif
