/* The kernels of a graph in order of execution, and where all that they touch lies: one value, which is made without
 * lowering anything, so that several ways to run a model can be planned and compared. */
#ifndef NNC_STORAGE_MEMORY_H
#define NNC_STORAGE_MEMORY_H

#include "kernel/kernel.h"
#include "plan/problem.h"

#define ARENA_ALIGNMENT 64 /* of the arena, and of every buffer in it */

typedef struct StateValue {
    ValueId value, next; /* what a run finds, and what it leaves there: NONE, the same */
    bool twice;          /* the next value cannot be made where the value is (state.h) */
    bool settled;        /* by flow_ends.c: it ends a loop, or branches */
    ValueId from; /* twice: what points to the place that holds the next value, which may be that of the value; NONE:
                     it is the other one */
} StateValue;

typedef struct LifePiece { /* steps [first, last) */
    int64_t first, last;
} LifePiece;

typedef struct Life { /* ascending and apart */
    LifePiece *piece;
    uint32_t count, capacity;
} Life;

/* Values of one type that share places, see flow.h. */
typedef struct Family {
    ValueId *member; /* passed and made */
    uint32_t count, capacity;
    uint32_t places;  /* 0: all of it lies in an array of the caller's, or in a state */
    ValueId *outside; /* per place: the output or state whose memory it is; NONE: it is in the arena, and then ... */
    uint32_t *buffer; /* ... one of its buffers of the plan */
    int64_t *offset;
    bool elsewhere; /* what is passed may be an array of the caller, or a state */
    int64_t bytes;
    ValueId maker, conflict; /* with several places: why; NONE */
} Family;

typedef struct Memory {
    Graph *graph;   /* node order is the order of execution */
    Kernel *kernel; /* the steps; kernels that have nothing to do are none */
    uint32_t kernel_count;
    uint32_t *kernel_of; /* per Node.kernel: its step, or NONE */
    Storages storage;
    PlanProblem problem; /* the arena's buffers ... */
    StorageId *holder;   /* ... and whose bytes each holds; a whole with parts may have several, each larger and later
                            than the one before, of one group */
    PlanResult plan;
    struct Regions *regions; /* of the steps; NULL where there are neither loops nor branches */
    const bool *member;      /* per value: of a family */
    Family *family;
    uint32_t family_count;
    const ValueId **avoided; /* per value: flow_avoided; NULL for most */
    StateValue *state;
    uint32_t state_count;
    uint32_t inplace_count; /* results written over an operand */
    bool *early;            /* per value: made before others that lie in front of it, or between; has_holes: some are */
    bool has_holes;
} Memory;

/* What may be left out, to see what it saves. */
typedef enum Without {
    WITHOUT_INPLACE = 1, /* no result is written over its operand */
    WITHOUT_VIEWS = 2,   /* every view of a result is a copy, made by a kernel of its own */
    WITHOUT_ORDER = 4,   /* kernels run in the order in which fusion left them */
    WITHOUT_PARTS = 8,   /* every concat and pad copies its operands */
} Without;

typedef struct MemoryOptions {
    const Target *target;
    const bool *copied; /* per value: it is not to be a part; may be NULL */
    unsigned without;   /* of Without, added */
    const char *allocator;
    int effort;
    int64_t capacity; /* bytes that the arena should not exceed; 0: any number.  A plan that does is no error */
    int64_t hopeless; /* bytes from which on nobody wants the plan, so that no effort goes into it; 0: none */
    uint32_t threads; /* that may share a kernel; 0: one */
    bool share_all;   /* however little there is to do */
    bool exact, lean; /* of Lower */
} MemoryOptions;

/* From a graph in its final order to a plan: parts, recipes, in-place, lives, placement.  Sets Value.inplace and the
 * kernels' marks.  False after an error in the module's diag. */
bool memory_plan(Graph *graph, const MemoryOptions *options, Memory *memory);

/* The first part of it: parts, recipes and in-place. */
bool memory_decide(Graph *graph, const MemoryOptions *options, Memory *memory);

/* lives.c: roles, bytes and lives of all storage, the kernels' scratch, and the plan's problem. */
void memory_lives(Memory *memory);

/* by_element.c: does the recipe of its kernel store the result of the node last of all, row by row
 * (Recipe.stores_last)? */
bool memory_stores_last(const Memory *memory, NodeId producer);

/* Does the kernel that makes the result read each element of the value before it writes it at the same place, and only
 * then? A map makes all that it stores of an element before it stores any (lower_stores). */
bool memory_reads_by_element(const Memory *memory, const Users *users, const bool *live_out, ValueId result,
                             ValueId value);

/* by_element.c: the value in memory that an update takes all of, and so may be made over; NONE of other nodes. */
ValueId memory_updated(const Graph *graph, const Node *node);

StorageId memory_whole(const Memory *memory, ValueId value); /* whose bytes the value's, or the view's, are */
/* The bytes [begin, end) from the first to the last of a part or a view, which may leave out some between, inside the
 * memory of the whole.  The value must not be empty. */
typedef struct Extent {
    int64_t begin, end;
} Extent;
Extent memory_extent(const Memory *memory, ValueId value);

/* judge.c: do the loads and stores of the lowered kernels find, and leave, what they should?  It asks neither fusion
 * nor recipes nor lives: it walks the steps and keeps for every byte of the arena whose it is.  False, with a message,
 * names the first fault.  Every compilation asks. */
bool memory_judge(const Memory *memory, Arena *scratch, Str *message);

#endif
