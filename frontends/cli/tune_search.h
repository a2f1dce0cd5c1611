/* The search of `nnc tune`: which recipes make the kernels of a graph fastest. */
#ifndef NNC_CLI_TUNE_SEARCH_H
#define NNC_CLI_TUNE_SEARCH_H

#include "cli/program.h"
#include "codegen/program/tune.h"

/* Kernels of one signature get one recipe: they do the same, and should share a function. */
typedef struct TuneGroup {
    Str signature, name; /* name: of the first of them */
    uint32_t kernels;
    KernelMark mark, best; /* of the present sweep; what is fastest so far */
    double ratio;          /* of the best's time to that of `mark` */
    KernelMark *variant;
    uint32_t count;
    double before, after; /* seconds of a run, in the last comparison */
} TuneGroup;

typedef struct TuneSearch {
    Cli *cli;
    uint32_t graph;           /* number among the graphs that the verb is given */
    double seconds, deadline; /* of one timing; when to stop, by clock_seconds */
    Tune *tune;               /* recipes that it begins with; in the end those of all its kernels */
    Str name;                 /* of the graph */
    const char *target;
    TuneGroup *group;
    uint32_t group_count, group_capacity;
    Map group_of;   /* a statement's */
    TuneLine *line; /* of each kernel, in order */
    uint32_t line_count, line_capacity;
    uint32_t timed; /* recipes */
    bool complete;  /* not stopped by the deadline */
} TuneSearch;

/* Returns the exit status.  What it finds lives in the arena of the verb. */
int tune_search(TuneSearch *search);

#endif
