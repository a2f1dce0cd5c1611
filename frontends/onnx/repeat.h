/* Blocks of statements that repeat, as functions and loops: shared by the parts that find, compare and write them. */
#ifndef NNC_ONNX_REPEAT_H
#define NNC_ONNX_REPEAT_H

#include "onnx/script.h"

#define MOST_ARGUMENTS 16

typedef struct RepeatValue { /* of the script */
    Str name;
    uint32_t statement;       /* that gives it; NONE: an input */
    uint32_t unit;            /* the same in the sequence; NONE: it is not in it */
    uint32_t number;          /* among the results there */
    uint32_t first_use, uses; /* statements that read it: in Repeat.use */
    bool result;
} RepeatValue;

/* What is compared: statements in their order, without params and constants that several of them read, which stay
 * where they are. */
typedef struct Repeat {
    OnnxScript *script;
    Arena *arena;
    RepeatValue *value; /* by the id of its name */
    uint32_t value_count;
    uint32_t *use;
    uint32_t *unit, unit_count; /* statements */
    uint32_t *class;            /* of each unit: what it is but for names and numbers */
    uint32_t *pair;             /* of each unit but the last: what it and the next are, as class */
    uint32_t *earlier, *later;  /* the nearest of the same pair; NONE */
    bool *bound;                /* it belongs to the unit before: a block does not begin with it */
} Repeat;

typedef struct RepeatSlot { /* an argument */
    Str *text;              /* in each instance: the name of a value, or a number */
    Str name;               /* in the function */
    bool number;
} RepeatSlot;

typedef struct RepeatName {  /* of a param, or the label of a layer */
    uint32_t unit;           /* of an instance, in which it stands */
    Str *text;               /* in each instance */
    Str suffix;              /* in the function */
    const OnnxLayer **layer; /* in each instance; NULL: a param */
    bool given;              /* by the model: it must stay */
} RepeatName;

typedef struct RepeatOutput {
    uint32_t unit, result;
} RepeatOutput;

typedef struct RepeatBlock {
    uint32_t length, count; /* units of an instance; instances */
    uint32_t *at;           /* the first unit of each */
    RepeatSlot slot[MOST_ARGUMENTS];
    uint32_t slot_count;
    RepeatOutput output[MOST_ARGUMENTS];
    uint32_t output_count;
    RepeatName *name;
    uint32_t name_count, name_capacity;
    Str *prefix; /* of the names, in each instance: the label of its call; NULL: there are no names */
    Str function;
    const char *called; /* the model's function that the first instance is a call of, if each is one of some; or NULL */
    int64_t gain;       /* lines that it saves */
    uint32_t scope;     /* what names of values have in common: between equals the longer wins */
} RepeatBlock;

/* block_shared.c: puts what several blocks read before them, before there is a sequence; false: all stays as it is. */
bool onnx_block_move_shared(Repeat *r);
/* block_compare.c: what is alike in the instances, those that are not are left out; false: it is no block. */
bool onnx_block_compare(Repeat *r, RepeatBlock *block);
/* Arguments and results that the block has at least, more than can be where the first instance alone has too many. */
uint32_t onnx_block_least_crossing(const Repeat *r, const RepeatBlock *block);
/* The unit of an instance that begins at `at` which makes the value, and as which of its results; NONE: none. */
uint32_t onnx_block_made(const Repeat *r, const RepeatBlock *block, uint32_t at, uint32_t value, uint32_t *result);
/* What names of values in the first instance have in common, in whole parts; few may lack it. */
Str onnx_block_scope(const Repeat *r, const RepeatBlock *block);
/* Sets what it is a call of. */
void onnx_block_find_called(const Repeat *r, RepeatBlock *block);
/* block_names.c: labels for calls, and names of params in the function; false: the model's names do not allow it. */
bool onnx_block_name(Repeat *r, RepeatBlock *block);
/* block_write.c: the function's text; calls in place of the instances. */
void onnx_block_write(Repeat *r, RepeatBlock *block, Text *functions);
/* block_loop.c: loops of calls that follow each other. */
void onnx_script_fold_calls(OnnxScript *script);

#endif
