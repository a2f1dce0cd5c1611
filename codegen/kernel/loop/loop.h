/* The loop IR: what a kernel does, as loops over buffers, before it is written as C or CUDA.
 *
 * A LANES region stands for `lanes` values of its variable at once: every expression that varies with the variable is a
 * vector, or in strict C99 what stands for one.  Lanes run in step: no statement may read what another lane has written
 * in the region, except through REDUCE. */
#ifndef NNC_KERNEL_LOOP_H
#define NNC_KERNEL_LOOP_H

#include "ir/graph.h"
#include "kernel/loop/index.h"
#include "ops/meaning.h"

typedef struct KernelBuffer { /* a parameter of the kernel's function */
    const char *role;         /* x, weight, y ...: a name for shared kernels */
    DType dtype;
    uint32_t storage; /* whose memory it is (of an owner, never of a view) */
    int64_t begin;    /* the element of it that the parameter points to: the first that the kernel uses ... */
    ValueId part;     /* ... which is the first of this part or view of it; NONE where there are several */
    int64_t shared;   /* elements, when it is not a parameter but an array that the threads of a block share */
    bool nibbles;     /* two elements to a byte (kernel/storage.h) */
    bool read, written;
} KernelBuffer;

typedef enum ExprKind {
    EXPR_NUMBER,
    EXPR_INDEX,  /* a loop position as a number */
    EXPR_RANDOM, /* number `index` of the draws of the key arg[0] */
    EXPR_LOAD,   /* buffer[index] */
    EXPR_LOCAL,  /* local, or local[index] */
    EXPR_WORD,   /* a word of arg[0..2] */
    EXPR_CAST,   /* arg[0] as dtype */
    EXPR_BITS,   /* the bits of arg[0] as those of a dtype */
    EXPR_BUNDLE, /* neighbours in a word of 32 bits, of type i32: loads of the first and the last, less `number` */
    EXPR_DOT,    /* arg[0] + the sum of the products of what is in the bundles arg[1] and arg[2]; as i32 wraps */
    EXPR_WITHIN, /* 0 <= index < limit ? arg[0] : arg[1]; arg[0] is not evaluated outside */
} ExprKind;

/* What a word of 32 bits holds, for an instruction that multiplies each and adds up the products. */
typedef enum Bundle {
    BUNDLE_I16,   /* two of them; the sums are i32 */
    BUNDLE_BYTES, /* four, of the first operand u8, of the second i8; i32 */
    BUNDLE_BF16,  /* two, the second added before the first, both rounded; f32 */
    BUNDLE_COUNT
} Bundle;

typedef struct Local {
    const char *name;
    DType dtype;
    int64_t extent[2]; /* 0: a scalar (or one vector); else registers, printed name3_1: always indexed by constants */
    bool lanes;        /* one value per lane of the region around it */
    bool array;        /* registers that count as those of unrolled loops do: printed name[3][1] */
    bool even;         /* a position that is a multiple of two */
    uint32_t id;
} Local;

typedef struct Expr {
    ExprKind kind;
    DType dtype;
    Word word;
    Draw draw;
    Bundle bundle;
    double number;
    uint32_t buffer;
    const Local *local;
    Index index, index2;
    int64_t limit;
    bool spread; /* LOAD: what lies between the elements of its lanes may be read with them */
    const struct Expr *arg[3];
} Expr;

typedef enum StmtKind {
    STMT_FOR,       /* var from low to high (exclusive) by step */
    STMT_LANES,     /* see above */
    STMT_LOCAL,     /* declares local, with the value if it has one */
    STMT_ASSIGN,    /* local[index][index2] = value */
    STMT_STORE,     /* buffer[index] = value; of several registers `together`, inside LANES, what these hold by turns:
                       buffer[index + r] = value[0][r] */
    STMT_REDUCE,    /* local (no lanes) = it and all lanes of value (a lanes local), combined by word */
    STMT_NOTE,      /* a comment */
    STMT_IF,        /* body when low <= index < high (constants), else other */
    STMT_PREFETCH,  /* the cache line of buffer[index] will be read soon (into cache level `level`) */
    STMT_TRANSPOSE, /* a square of lanes x lanes elements: buffer[index + j * stride + i] = value[i * from_stride + j],
                       where value is the load of the square's first element; outside LANES */
    STMT_PRODUCT,   /* a matrix from buffer[index] on = the product of two others, by a library: `value` is that of the
                       loads of their first elements; outside LANES */
    STMT_TILES,     /* tile registers are shaped for `product`, whose rows and depth count, or given back: NULL */
    STMT_MEET,      /* inside THREADS: local (of every thread) = those of all threads, combined by word */
    STMT_BARRIER,   /* inside THREADS: all threads have come here, and see each other's stores */
} StmtKind;

typedef enum LoopKind {
    LOOP_SERIAL,
    LOOP_PARALLEL, /* rounds are independent: the targets may run them at once */
    LOOP_THREADS,  /* rounds run at once, as threads that may meet; only for targets that have teams of threads */
    LOOP_ROLLED,   /* must not be unrolled by the C compiler: its body fills the registers already */
    LOOP_UNROLLED, /* must be unrolled by the compiler: its variable counts registers; of constant bounds */
    LOOP_IN_ORDER, /* of its body a C compiler makes vectors, and should not of its rounds */
} LoopKind;

/* Who makes a product of matrices: a library, or tile registers (AMX), whose sums begin with 0 or with `value`, the
 * load of the first of a row of them, are added to, and are stored at the end; until then what is in memory is theirs.
 */
typedef enum ProductMaker { PRODUCT_LIBRARY, PRODUCT_TILES_BEGIN, PRODUCT_TILES_ADD, PRODUCT_TILES_END } ProductMaker;

/* A product of matrices: [rows, depth] * [depth, columns].  Rows of an operand, or its columns where it is transposed,
 * are so many elements apart; so are the result's rows.  Of tiles the second operand is packed, rows of so many bundles
 * of the depth, and its stride is that of these. */
typedef struct MatrixProduct {
    int64_t rows, columns, depth;
    int64_t left_stride, right_stride, stride;
    bool left_transposed, right_transposed;
    ProductMaker maker;
    Bundle bundle;
} MatrixProduct;

typedef struct Stmt Stmt;
typedef struct Block {
    Stmt *first, *last;
} Block;

struct Stmt {
    StmtKind kind;
    Stmt *next;
    const Var *var; /* FOR, LANES */
    LoopKind loop;
    Index low, high;            /* FOR: bounds; may depend on outer variables ... */
    Index low_least, high_most; /* ... and are max(low, low_least), min(high, high_most) when clamp is set */
    bool clamp_low, clamp_high;
    int64_t step;
    uint32_t lanes;    /* LANES, TRANSPOSE; of MEET the threads */
    uint32_t together; /* STORE: so many registers, or 0 */
    uint32_t parts;    /* STORE of f32 as so many bf16, or 0: the nearest, and ... */
    int64_t rest;      /* ... each time so many elements behind it the nearest to what is left */
    Block body, other;
    const Local *local;
    uint32_t buffer;
    Index index, index2;
    const Expr *value;
    Word word; /* REDUCE, MEET: WORD_ADD, WORD_MUL, WORD_MAX, WORD_MIN */
    const char *note;
    int64_t stride, from_stride;  /* TRANSPOSE */
    uint32_t level;               /* PREFETCH: 1 or 2 */
    const MatrixProduct *product; /* PRODUCT */
};

/* Expressions */
const Expr *expr_number(Arena *arena, DType dtype, double number);
const Expr *expr_index(Arena *arena, DType dtype, Index index);
const Expr *expr_random(Arena *arena, Draw draw, const Expr *key, Index index); /* f32; of words i64 */
const Expr *expr_load(Arena *arena, DType dtype, uint32_t buffer, Index index);
const Expr *expr_load_spread(Arena *arena, DType dtype, uint32_t buffer, Index index);
const Expr *expr_local(Arena *arena, const Local *local);
const Expr *expr_local_at(Arena *arena, const Local *local, Index i, Index j);
const Expr *expr_word(Arena *arena, Word word, DType dtype, const Expr *x, const Expr *y, const Expr *z);
const Expr *expr_cast(Arena *arena, DType dtype, const Expr *x);
const Expr *expr_within(Arena *arena, Index index, int64_t limit, const Expr *inside, const Expr *outside);
const Expr *expr_bits(Arena *arena, DType dtype, const Expr *x);
/* buffer[index] - less, buffer[index + 1] - less, ...: as many of 8 or 16 bits as the bundle has. */
const Expr *expr_bundle(Arena *arena, Bundle bundle, DType dtype, uint32_t buffer, Index index, double less);
const Expr *expr_dot(Arena *arena, Bundle bundle, const Expr *sum, const Expr *x, const Expr *y);
bool expr_uses(const Expr *expr, const Var *var);
/* The load of bytes of which `halves` takes the low half, x & 15, or the high one, x >> 4; NULL: it does not. */
const Expr *expr_halved(const Expr *halves, bool *high);
bool expr_eq(const Expr *a, const Expr *b);
const Expr *expr_substitute(Arena *arena, const Expr *expr, const Var *var, Index with);
/* Calls visit for every load in the expression, also inside data indices. */
void expr_loads(const Expr *expr, void (*visit)(void *context, const Expr *load), void *context);
void index_loads(Index index, void (*visit)(void *context, const Expr *load), void *context);

static inline uint32_t bundle_count(Bundle bundle)
{
    return bundle == BUNDLE_BYTES ? 4 : 2;
}

/* Indices, and the expressions that they read. */
bool index_uses(Index a, const Var *var);
bool index_reads_data(Index a); /* computed numbers, as positions that are read from memory */
/* Every use of `var` becomes `with`. */
Index index_substitute(Arena *arena, Index a, const Var *var, Index with);
/* Is it affine in var: a == factor * var + (something without var)? */
bool index_factor(Index a, const Var *var, int64_t *factor);
/* Is it a multiple of two, whatever its variables are? */
bool index_is_even(Index a);
/* A divisor by which an atom cuts `var` itself (so that splitting its loop makes the address affine), or 0.  `first`,
 * which may be NULL: the first value of var that begins a part, where they begin at a constant. */
int64_t index_cut(Index a, const Var *var, int64_t *first);
/* The largest part that none of its atoms cuts, of those that begin at 0; 0: none cuts var. */
int64_t index_finest_cut(Index a, const Var *var);

/* A copy of the block in which every use of the variable is `with`. */
Block block_substitute(Arena *arena, const Block *block, const Var *var, Index with);

/* Does it store to its buffer, be it one element or many? */
static inline bool stmt_stores(const Stmt *stmt)
{
    return stmt->kind == STMT_STORE || stmt->kind == STMT_TRANSPOSE || stmt->kind == STMT_PRODUCT;
}

/* Sets used[buffer] for each that the block loads or stores. */
void block_buffers(const Block *block, bool *used);

/* How many numbers of locals there are in it, with those of all blocks within: 1 + the largest id. */
uint32_t block_locals(const Block *block);

/* How many statements it is, with those of all blocks within. */
uint64_t block_count(const Block *block);

/* Statements; each is appended to the block. */
void block_append(Block *block, Block rest); /* statements that nothing else holds */
Stmt *stmt_for(Arena *arena, Block *block, const Var *var, int64_t low, int64_t high, int64_t step, LoopKind kind);
int64_t stmt_rounds(const Stmt *loop); /* of constant bounds */
Stmt *stmt_lanes(Arena *arena, Block *block, const Var *var, uint32_t lanes);
void stmt_local(Arena *arena, Block *block, const Local *local, const Expr *value);
void stmt_assign(Arena *arena, Block *block, const Local *local, Index i, Index j, const Expr *value);
void stmt_store(Arena *arena, Block *block, uint32_t buffer, Index index, const Expr *value);
/* What the first `count` columns of registers hold, by turns. */
void stmt_store_together(Arena *arena, Block *block, uint32_t buffer, Index index, const Local *registers,
                         uint32_t count);
/* A value of f32 as so many bf16, `rest` elements apart: the nearest, and each time the nearest to what is left. */
void stmt_store_parts(Arena *arena, Block *block, uint32_t buffer, Index index, uint32_t parts, int64_t rest,
                      const Expr *value);
void stmt_reduce(Arena *arena, Block *block, Word word, const Local *into, const Local *lanes);
void stmt_meet(Arena *arena, Block *block, Word word, const Local *local, uint32_t threads);
void stmt_barrier(Arena *arena, Block *block);
Stmt *stmt_if(Arena *arena, Block *block, Index index, int64_t low, int64_t high);
Stmt *stmt_where(Arena *arena, Block *block, const Expr *truth); /* of DT_BOOL */
void stmt_prefetch(Arena *arena, Block *block, uint32_t buffer, Index index, uint32_t level);
void stmt_transpose(Arena *arena, Block *block, uint32_t lanes, uint32_t to, Index to_index, int64_t to_stride,
                    const Expr *from, int64_t from_stride);
void stmt_product(Arena *arena, Block *block, const MatrixProduct *product, uint32_t to, Index to_index,
                  const Expr *left, const Expr *right);
/* Of tiles: where sums begin, with a load or NULL, or end; and registers for them, or for none. */
void stmt_tile_sums(Arena *arena, Block *block, const MatrixProduct *product, uint32_t sums, Index index,
                    const Expr *start);
void stmt_tiles(Arena *arena, Block *block, const MatrixProduct *product);
void stmt_note(Arena *arena, Block *block, const char *note);

const Var *index_var_new(Arena *arena, const char *name, int64_t low, int64_t high);

#endif
