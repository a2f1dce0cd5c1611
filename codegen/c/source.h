/* What emitted sources have in common, whether C or CUDA: names, arguments, weights, signatures. */
#ifndef NNC_C_SOURCE_H
#define NNC_C_SOURCE_H

#include "c/print.h"
#include "program/program.h"

/* A model's name as a C identifier: dots and the like become underscores, keywords, macros and NAME_run's own
 * names get one, and what is very long is cut. */
Str source_identifier(Arena *arena, Str name);
/* Text of the model or of its user inside a comment: without what ends it, or what compilers warn of there. */
Str source_comment(Arena *arena, Str text);
Str source_string(Arena *arena, Str text); /* what stands between the quotes of a C string */
/* As source_identifier; inside a kernel also no loop variable, local (they end in digits) or helper (exp_f32x16). */
Str source_safe_name(Arena *arena, Str name, bool inside);
bool source_name_is_taken(Str name);    /* a keyword of C or C++, a macro, a name of NAME_run's own */
bool source_name_is_function(Str name); /* of the C library, and called by kernels */
/* The function's name: digits_run. */
Str source_entry_name(const Entry *entry, Arena *arena);
/* Behind names of what there is for each entry: `_decode`, or nothing where there is one. */
Str source_entry_suffix(const Entry *entry, Arena *arena);
/* The parameters of an entry, each with a name of its own: the inputs', then the outputs'. */
const Str *source_port_names(const Entry *entry, Arena *arena);
/* Adds the names of the weights' arrays, which nothing may hide. */
void source_take_weights(const Program *program, Arena *arena, Map *taken);
/* Adds what entries call the blocks that are kept, and the team, where there are any. */
void source_take_kept(const Program *program, Map *taken);
/* Adds the names that stand in the source already, or hide what is called so in NAME_run. */
void source_take_names(const Program *program, Arena *arena, Map *taken);
const char *source_upper(Arena *arena, Str name);

/* Is each buffer of kernel k the same memory as another one of it (in place)? */
const bool *source_aliased(const Entry *entry, Arena *arena, uint32_t k);
/* Names in the function of kernel k: where it stands in one place the model's, as far as there are any, else roles. */
KernelNames source_function_names(const Entry *entry, Arena *arena, uint32_t k, uint32_t users, Str function,
                                  const uint32_t *inplace);
/* The blocks that are kept: `params`, `packed` and `state` as parameters, `p`, `k` and `s` inside; what a function
 * returns where one is missing. */
const char *source_block_name(KeptBlock block);
const char *source_block_pointer(KeptBlock block);
const char *source_block_bytes(const Program *program, KeptBlock block, Arena *arena); /* the macro */
int source_block_status(KeptBlock block);
/* Where a param or state lies: `p + 64`, or `s + (s[0] ? 4160 : 64)` for a state that has memory twice. */
Str source_kept_place(const Entry *entry, Arena *arena, const Storage *storage);
/* Buffer b of kernel k where NAME_run, whose parameters are called `port`, calls it. */
Str source_argument(const Entry *entry, const Str *port, Arena *arena, uint32_t k, uint32_t b);
/* The same of any buffer; what moves is called v and the value's number. */
Str source_storage(const Entry *entry, const Str *port, Arena *arena, const KernelBuffer *buffer);
/* Pointers as the function of an entry has them, for what C and CUDA print alike. */
typedef struct Pointers {
    const Entry *entry;
    Str (*of)(void *context, ValueId value); /* to a value in memory, as a whole */
    void *context;
} Pointers;
/* The place of its family that is free when the value is made: `x != p && y != p ? p : ...` (storage/flow.h). */
Str source_free_place(const Pointers *pointers, Arena *arena, ValueId maker);
/* Whether a copy that asks is made: `x != y`. */
Str source_copy_is_due(const Pointers *pointers, Arena *arena, const Kernel *kernel);
/* The kernel's nodes as a comment, when the caller can describe them; of one whose `calls` have been `told` of, only
 * which kernel that was. */
void source_describe(Text *out, const Entry *entry, const Kernel *kernel, uint32_t indent, Map *told, Str calls);

#define SOURCE_WIDTH 120 /* of lines; comments that hold a line of the model are as long as it is */

/* Breaks the last line of a text after commas, within its parentheses, where it is too long. */
void source_break_list(Text *out);
/* `const float image[784], float probability[10], const void *weights, void *arena` */
void source_parameters(Text *out, const Entry *entry, Arena *arena);
/* `int digits_run(...)`, of these, in several lines where they are many. */
void source_signature(Text *out, const Entry *entry, Arena *arena);
/* Of the memory that the caller lends, what stands in front of the arena in a call: `weights, params, state, `; an
 * entry has params or what is packed of them, never both. */
Str source_lent(const Entry *entry, Arena *arena);
/* `unsigned char *const p = (unsigned char *)params;` and so on, of the blocks that are kept; params that are only read
 * are const. */
void source_kept_pointers(Text *out, const Entry *entry);
/* The same as prose for the header: names and types. */
void source_interface(Text *out, const Entry *entry, Arena *arena);
void source_head(Text *out, const Program *program, const char *suffix, const char *what);

/* What draws first values: functions for each way and dtype, and the call that fills a slot.  It is a kernel on a GPU.
 */
void source_start_needs(const Program *program, PreludeNeeds *needs, Arena *arena);
void source_start_functions(Text *out, const Program *program, PreludeNeeds *needs, Arena *arena);
Str source_start_function(const KeptSlot *slot, Arena *arena);  /* `nnc_normal_f32` */
Str source_start_arguments(const KeptSlot *slot, Arena *arena); /* behind where it writes to */
bool source_start_seeded(const Program *program);               /* does a seed change any param? */
void source_start_comment(Text *out, const KeptSlot *slot, Arena *arena);
bool source_is_zero(const KeptSlot *slot); /* START_FILL: by bytes of 0 */
/* How many slots from this one on, all of its block, begin as zeros: they are filled at once. */
uint32_t source_zeros(const Kept *kept, uint32_t slot);
/* Goes on to the first slot of the block, from this one on, that has bytes; `next` is behind what is filled with it. */
bool source_next_start(const Kept *kept, KeptBlock block, uint32_t *slot, uint32_t *next);
int64_t source_zeros_bytes(const Kept *kept, uint32_t slot, uint32_t count); /* from its start to the end of the last */
void source_zeros_comment(Text *out, const Kept *kept, uint32_t slot, uint32_t count, Arena *arena);
Str source_start_name(const Program *program, KeptBlock block, Arena *arena); /* `digits_params_init` */
/* `int digits_params_init(void *params, int64_t seed`: a stream may follow. */
Str source_start_signature(const Program *program, KeptBlock block, Arena *arena);
/* What stands in a call of it: `params, seed`. */
Str source_start_lent(const Program *program, KeptBlock block, Arena *arena);
/* The sizes of the blocks as macros, and the layout of params as a comment. */
void source_kept_sizes(Text *out, const Program *program, const char *of);

/* For CompileOptions.checked: the macros, and the statements before kernel k (after the last one for kernel_count). */
void source_checked_macros(Text *out);
void source_checked_step(Text *out, const Entry *entry, int64_t k);

/* The array that a storage which is constant is. */
const Weights *source_array(const Entry *entry, const Storage *storage);
Str source_weight_name(const Program *program, Arena *arena, uint32_t w);
/* Element i of an array in memory as a literal that reads back the same. */
void source_element(Text *out, DType dtype, const void *bytes, int64_t i);
/* What their bytes are called in the function of an entry where they are no arrays of C: `w`, `digits_weights`. */
Str source_weights_block(const Program *program, Arena *arena);
/* Where an array of the weights starts, in the function of an entry. */
Str source_weights_place(const Program *program, Arena *arena, uint32_t w);
/* `qualifier float w0_name[10] = {...};` under a comment that names it. */
void source_weight_array(Text *out, const Program *program, Arena *arena, uint32_t w, const char *qualifier);

#endif
