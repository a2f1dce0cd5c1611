/* The op table, made from op.def: everything that passes, evaluator and targets need to know of an op by name. */
#ifndef NNC_IR_OP_H
#define NNC_IR_OP_H

#include "ir/type.h"
#include "ir/word.h"

typedef enum OpCode {
#define OP(NAME, ...)          OP_##NAME,
#define ELEMENTWISE(NAME, ...) OP_##NAME,
#include "ir/op.def"
    OP_COUNT
} OpCode;

#define OP_WRITTEN OP_LOOP_BEGIN /* those that a text may have come before it */

/* An op family shares shape inference, evaluation and lowering; ops/<family>.c implements it. */
typedef enum OpFamily {
    FAMILY_ELEMENTWISE, /* one scalar expression at each position, operands broadcast */
    FAMILY_CAST,        /* dtype conversion */
    FAMILY_REDUCE,      /* over some dimensions */
    FAMILY_CUMULATE,    /* running sums and products along a dimension */
    FAMILY_SORT,        /* where elements are that come first in the order of a dimension */
    FAMILY_CONTRACT,    /* matmul, convolution */
    FAMILY_POOL,        /* over a sliding window */
    FAMILY_MATCH,       /* what windows give to the elements that equal theirs, or take from them */
    FAMILY_VIEW,        /* an index map: aliases where strides allow */
    FAMILY_ASSEMBLE,    /* concat, stack, pad: the result is put together from its operands; no stack is left after
                           expand */
    FAMILY_GATHER,      /* reads, replaces or adds at computed positions */
    FAMILY_DYNAMIC,     /* a part that begins at computed positions, read or replaced */
    FAMILY_GENERATE,    /* no tensor operand: constants, ramps, random initialisers */
    FAMILY_DRAW,        /* random numbers from a key that is an operand */
    FAMILY_LAYOUT,      /* changes where elements lie, not what they are */
    FAMILY_CONTROL,     /* call, minimize, while, case: nodes with sub-graphs */
    FAMILY_DERIVATIVE,  /* asks for gradients; gone after the pass grad */
    FAMILY_FLOW,        /* where bodies that are laid out in line begin and end; hidden */
    FAMILY_COUNT
} OpFamily;

typedef enum Effect {
    EFFECT_PURE,    /* may be removed, shared, moved, recomputed */
    EFFECT_ORDERED, /* stays, in program order */
} Effect;

/* May the result take over the memory of an operand that dies here? */
typedef enum Inplace {
    INPLACE_NEVER,
    INPLACE_SAME,  /* of any operand with the same bytes at the same positions: position i is read before it is written
                    */
    INPLACE_FIRST, /* of operand 0, which it is like but where it is written; the other operands must not share it */
} Inplace;

/* The result's dtype, for elementwise ops. */
typedef enum ResultRule {
    RESULT_SAME,   /* of the operands, which must agree */
    RESULT_BOOL,   /* comparisons */
    RESULT_LOGIC,  /* bool operands and result */
    RESULT_SELECT, /* operand 0 is bool, the others agree */
} ResultRule;

/* Which dtypes an elementwise op takes. */
typedef enum DTypeClass { CLASS_ANY, CLASS_NUMBER, CLASS_FLOAT, CLASS_INT, CLASS_I64, CLASS_BOOL } DTypeClass;

typedef enum AttrKind {
    ATTR_INT,
    ATTR_FLOAT,
    ATTR_BOOL,
    ATTR_INTS, /* a list of integers; one integer stands for a list of any length of it */
    ATTR_PAD,  /* the same, or the word "same" or "valid", in whose place inference puts the integers */
    ATTR_DTYPE,
    ATTR_STRING,
} AttrKind;

typedef struct AttrSpec {
    const char *name; /* NULL ends a list */
    AttrKind kind;
    const char *fallback; /* as .nnc text, or the attribute whose list it takes; NULL when it must be given */
} AttrSpec;

typedef struct OpInfo {
    const char *name;     /* as written in .nnc */
    const char *operands; /* their names, separated by blanks; `?` marks an optional last one, `*` one or more */
    OpFamily family;
    Effect effect;
    Inplace inplace;
    const AttrSpec *attr;              /* sorted as nodes hold them; ends with a NULL name */
    const ScalarList *scalar;          /* elementwise: the scalar expression over x, y, z; else NULL */
    const char *expression;            /* its text */
    const ScalarList *const *gradient; /* elementwise: of each operand, over the operands, then the result and its
                                          gradient */
    const char *gradient_text;         /* all of them */
    ResultRule result;
    DTypeClass operand_class;
    bool commutative;
    const char *doc; /* one line */
} OpInfo;

const OpInfo *op_info(OpCode op);
OpCode op_find(Str name);     /* of those that a text may have; OP_COUNT when there is none */
OpCode op_of_word(Word word); /* the elementwise op that is this word applied to its operands, in order */
uint32_t op_attr_count(OpCode op);
uint32_t op_least(OpCode op); /* operands */
uint32_t op_most(OpCode op);  /* UINT32_MAX after `*` */
/* The name of the last operand, when there may be any number of it, and others come before: written `wrt = [x, y]`.
 * Else empty. */
Str op_list(OpCode op);

#endif
