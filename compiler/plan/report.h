/* A plan as people read it.  A report describes a plan without its graph: who fills it in (the compiler, or the reader
 * of a bare problem) gives names; the printers below need nothing else. */
#ifndef NNC_PLAN_REPORT_H
#define NNC_PLAN_REPORT_H

#include "plan/problem.h"
#include "plan/sort.h"

#define PLAN_NO_ROW UINT32_MAX

typedef enum PlanKind {
    PLAN_TENSOR,
    PLAN_INPUT,
    PLAN_OUTPUT,
    PLAN_STATE,
    PLAN_SCRATCH,
    PLAN_GROWING, /* what there is of a tensor before all of its parts have been made; a larger row takes it over */
    PLAN_KINDS
} PlanKind;

typedef struct PlanRow { /* a tensor */
    Str name, type;      /* "conv1", "f32[1, 64, 112, 112]"; type may be empty */
    PlanKind kind;
    int64_t bytes, offset; /* offset within its region's arena */
    int64_t span;          /* bytes from its first to its last: more where a part or a view leaves out some between */
    int64_t first, last;   /* live in the steps [first, last) */
    uint32_t region;
    uint32_t alias_of;  /* row it is a part or a view of, or PLAN_NO_ROW; an alias adds nothing to sums */
    uint32_t reuses;    /* row whose memory it takes over, or PLAN_NO_ROW; plan_report_finish fills it in */
    const int64_t *use; /* steps that read or write it, rising; NULL: not known */
    uint32_t use_count;
    uint32_t scope; /* the part of the model it is of, or PLAN_NO_ROW; plan_report_finish fills it in */
} PlanRow;

typedef struct PlanSaving { /* what a decision before placement saved: "in-place", 1234567 */
    Str what;
    int64_t bytes;
} PlanSaving;

typedef struct PlanShare { /* bytes that two live rows have in common: one is computed in place of the other */
    uint32_t region;
    int64_t first, last, bytes; /* in the steps [first, last) */
} PlanShare;

typedef struct PlanLevel { /* from this step on, until the next level, so many bytes are live */
    int64_t step, live;
} PlanLevel;

typedef struct PlanCarried { /* a value that goes from round to round */
    Str name;
    uint32_t places;     /* that it turns in; 1: it stays where it is; 0: all of it lies outside of the plan */
    uint32_t outside;    /* of these places: in the arrays of outputs, or in states */
    bool in_output;      /* the one place is the array of an output */
    bool elsewhere;      /* before the first round it may be an array of the caller */
    Str maker, conflict; /* with several places: what is made while what is still read */
} PlanCarried;

typedef struct PlanLoop {
    int64_t first, last; /* steps [first, last), with those that begin and end it */
    int64_t rounds;      /* at most; 0: not known */
    bool counted;        /* exactly so many */
    const PlanCarried *carried;
    uint32_t carried_count;
    int64_t copied; /* bytes that a round moves from place to place and does nothing else with */
} PlanLoop;

typedef struct PlanRecomputed { /* what is computed again to keep to a limit */
    int64_t peak_before;        /* without it */
    int64_t operations_before, operations;
} PlanRecomputed;

typedef struct PlanReport {
    Str title; /* the model's name */
    PlanRow *row;
    uint32_t count;
    const Str *step; /* names of the steps 0 .. step_count - 1; NULL: they are numbered */
    int64_t step_count;
    const Str *region; /* names of the regions; NULL when there is one */
    uint32_t region_count;
    int64_t peak, lower_bound;
    bool proven;
    uint64_t nodes;
    const char *allocator;
    const PlanSaving *saving;
    uint32_t saving_count;
    const PlanLoop *loop; /* in order of the steps that begin them */
    uint32_t loop_count;
    PlanRecomputed recomputed; /* zero: nothing is */

    /* From here on plan_report_finish fills in. */
    int64_t naive;     /* sum of all bytes: what it takes when nothing is reused */
    int64_t peak_step; /* the first step with the most live bytes, whose node is to blame; and those bytes */
    int64_t peak_live;
    int64_t first_step, last_step; /* [first_step, last_step) covers all lives */
    PlanShare *share;
    uint32_t share_count;
    const uint32_t *blame; /* rows live at peak_step, largest first */
    uint32_t blame_count;
    const Str *scope; /* names of the parts of the model, by first use; none when they cannot be told apart */
    uint32_t scope_count;
    Str hint; /* what would lower the peak, in a few sentences; empty when nothing is live */
} PlanReport;

/* A report of a bare problem; `id` gives the names, or NULL.  Finished. */
PlanReport plan_report_of(Arena *arena, const PlanProblem *problem, const PlanResult *result, const Str *id);

/* Computes what can be known from the rows.  O(n log n). */
void plan_report_finish(Arena *arena, PlanReport *report);

/* The part of it that fills in blame and hint (report_blame.c). */
void plan_find_blame(Arena *arena, PlanReport *report);

/* Has the row memory of its own? */
static inline bool plan_row_is_stored(const PlanRow *row)
{
    return row->alias_of == PLAN_NO_ROW && row->bytes > 0;
}

/* How many tensors have memory of their own; one that is made in parts counts once. */
uint32_t plan_stored(const PlanReport *report);

/* The rows by the step in which their lives begin, else as they are. */
SortKey *plan_rows_by_start(Arena *arena, const PlanReport *report);

/* The part of it that fills in scopes (report_scopes.c). */
void plan_find_scopes(Arena *arena, PlanReport *report);

/* "conv2d_relu (step 12)", or "step 12". */
Str plan_step_name(Arena *arena, const PlanReport *report, int64_t step);

/* The live bytes of one region, or with PLAN_NO_ROW of all, by rising step; what rows share counts once. */
uint32_t plan_report_levels(Arena *arena, const PlanReport *report, uint32_t region, PlanLevel **levels);

/* Per loop how many others it lies in; and how many levels that makes. */
const uint32_t *plan_loop_depths(Arena *arena, const PlanReport *report, uint32_t *levels);

/* "5 rounds, x in 2 places": what is said of a loop in pictures; in brief, without what is carried. */
Str plan_loop_label(Arena *arena, const PlanLoop *loop, bool brief);

/* The printers take a finished report. */
/* columns: names and types are elided to fit into so many, or 0: they are whole, one row for each tensor. */
void plan_print_table(Text *out, const PlanReport *report, uint32_t columns);
void plan_print_chart(Text *out, const PlanReport *report, uint32_t columns); /* columns: width, 100 suits terminals */
void plan_print_json(Text *out, const PlanReport *report);                    /* schema: docs/planning.md, version 1 */
void plan_print_svg(Text *out, const PlanReport *report);
void plan_print_html(Text *out, const PlanReport *report); /* one page, with the JSON inside */

/* For the printers (report_text.c).  25088 as "25,088" (at most 27 bytes with the zero), and as "24.5 KiB" (at most
 * 16). */
const char *plan_digits(char *buffer, int64_t value);
const char *plan_bytes(char *buffer, int64_t bytes);
int plan_columns(Str s); /* of a terminal: one per code point, which holds for the names that models have */
/* Lines with breaks at blanks where they would pass so many columns; a line goes on under the last column of text that
 * begins before there, or set in by two.  With `elide` words that are still too long are cut, else they stay whole. */
void plan_put_folded(Text *out, Str lines, int columns, bool elide);
void plan_put_elided(Text *out, Str s, int columns); /* in so many columns, the middle of a longer one left out */
/* What has no room for a table: numbers with their labels, set in by two, as many in a line as fit; values have `width`
 * columns, so that those of several calls stand below each other. */
void plan_put_pairs(Text *out, const char *const *label, const Str *value, uint32_t count, int width, int columns);
bool plan_is_text(Str s);                        /* UTF-8 of characters that show as themselves */
Str plan_printable(Arena *arena, Str s);         /* a copy with ? for those that do not */
void plan_put_printable(Text *out, Text *lines); /* the same of several lines, which are freed */
void plan_json_string(Text *out, Str s);         /* with its quotes; bytes that are not UTF-8 become U+FFFD */
void plan_escape_xml(Text *out, Str s);          /* for text and attributes; U+FFFD where XML knows no such character */

#endif
