/* A compiled program in this process: built as a shared library in a private folder, loaded, called. */
#ifndef NNC_CLI_HOST_H
#define NNC_CLI_HOST_H

#include "cli/emit.h"
#include "nnc.h"

typedef struct Host {
    Folder folder;
    void *library;
    const nnc_model *model;
    nnc_weights weights;
    void *arena, *params, *state;
    nnc_pool *pool;     /* NULL: one thread */
    const void **input; /* per input and output of the model */
    void **output;
} Host;

/* Compiles and loads; `seed` is that of nnc_params_new.  Returns the exit status; host_close in any case. */
int host_open(Cli *cli, const Program *program, int64_t seed, Host *host);
/* Binds tensors of the graph's inputs, and allocates the outputs. */
const Tensor **host_bind(Cli *cli, const Graph *graph, Host *host, const Tensor *const *input);
int host_run(const Host *host); /* 0, or what the model's function returned */
/* Runs again and again for about `seconds`, at least `least` times; the times of all runs, sorted. */
typedef struct Times {
    double *second;
    uint32_t count;
} Times;
Times host_time(Cli *cli, const Host *host, double seconds, uint32_t least);
void host_close(Host *host);

#endif
