/* A loop under construction: between `while` and `do` (build_control.c) and `scan` (build_scan.c). */
#ifndef NNC_FRONTENDS_NNC_BUILD_LOOP_H
#define NNC_FRONTENDS_NNC_BUILD_LOOP_H

#include "frontends/nnc/build.h"

typedef struct LoopBuilder {
    const AstControl *ast;
    Place place;
    ValueId *in; /* first values: of the names in `with`, in order, then of what has no name; later what is captured */
    uint32_t carried, capacity;
    int64_t most, unroll;
    uint32_t errors; /* when it began */
    bool failed;
} LoopBuilder;

void build_loop_start(Builder *b, LoopBuilder *loop, const AstExpr *expr); /* with the first values of `with` */
void build_loop_carry(Builder *b, LoopBuilder *loop, ValueId first);       /* one more, without a name */
const Type *build_loop_type(const LoopBuilder *loop, const Frame *around, uint32_t i);
bool build_loop_limits(Builder *b, LoopBuilder *loop);
/* Enters a body whose inputs are the carried values; to be left with build_body_leave. */
void build_loop_enter(Builder *b, LoopBuilder *loop, Frame *frame);
void build_loop_next(Builder *b, LoopBuilder *loop); /* outputs of the current body, of the names in `with` */
bool build_loop_is_sound(const Builder *b, const LoopBuilder *loop);
NodeId build_loop_node(Builder *b, LoopBuilder *loop, Frame *frame, uint32_t frames);

#endif
