#include "cli/host.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "cli/clock.h"

#define MOST_RUNS 100000

static int load(Cli *cli, const Program *program, int64_t seed, Host *host)
{
    Str name = program->options.name;
    Str library = folder_file(cli, &host->folder, str_format(&cli->arena, "lib" STR_FMT ".so", STR_ARG(name)));
    Str weights = folder_file(cli, &host->folder, str_format(&cli->arena, STR_FMT ".weights", STR_ARG(name)));

    if (*program_libraries(program))
        setenv("OPENBLAS_NUM_THREADS", "1", 0); /* kernels are shared out by our own pool */
    host->library = dlopen(library.ptr, RTLD_NOW | RTLD_LOCAL);
    if (!host->library)
        return cli_environment("cannot load the compiled model: %s", dlerror());
    host->model = dlsym(host->library, str_format(&cli->arena, STR_FMT "_model", STR_ARG(name)).ptr);
    if (!host->model)
        return cli_environment("the compiled model has no descriptor: %s", dlerror());
    nnc_status status = nnc_weights_open(&host->weights, host->model, weights.ptr);
    if (status != NNC_OK)
        return cli_environment("cannot take the compiled model: %s", nnc_status_text(status));
    host->arena = nnc_arena_new(host->model);
    host->params = nnc_params_new(host->model, seed, &host->weights);
    host->state = nnc_state_new(host->model, &host->weights);
    host->pool = host->model->threads > 1 ? nnc_pool_new(host->model->threads) : NULL;
    if (host->model->threads > 1 && !host->pool)
        return cli_environment("cannot start %u threads", host->model->threads);
    if (!host->arena)
        return cli_environment("no memory for an arena of %zu bytes", host->model->arena_bytes);
    if (!host->params)
        return cli_environment("no memory for %zu bytes of params", host->model->params.bytes);
    return host->state ? STATUS_OK : cli_environment("no memory for %zu bytes of states", host->model->state.bytes);
}

int host_open(Cli *cli, const Program *program, int64_t seed, Host *host)
{
    *host = (Host){0};
    if (!folder_open(cli, (Str){NULL, 0}, &host->folder) || !emit_sources(cli, program, &host->folder))
        return STATUS_ENVIRONMENT;
    int status = emit_shared(cli, program, &host->folder);
    return status == STATUS_OK ? load(cli, program, seed, host) : status;
}

const Tensor **host_bind(Cli *cli, const Graph *graph, Host *host, const Tensor *const *input)
{
    const Tensor **result = ARENA_ARRAY(&cli->arena, const Tensor *, graph->output_count + 1);
    host->input = ARENA_ARRAY(&cli->arena, const void *, graph->input_count + 1);
    host->output = ARENA_ARRAY(&cli->arena, void *, graph->output_count + 1);

    for (uint32_t i = 0; i < graph->input_count; i++)
        host->input[i] = input[i]->data;
    for (uint32_t i = 0; i < graph->output_count; i++) {
        const Type *type = value_type(graph, graph->output[i].value);
        result[i] =
            tensor_new(&cli->arena, module_plain_type(graph->module, type->dtype, type->shape.rank, type->shape.dim));
        host->output[i] = result[i]->data;
    }
    return result;
}

int host_run(const Host *host)
{
    return host->model->entry->run(host->input, host->output, host->arena, host->weights.data, host->params,
                                   host->state, nnc_pool_team(host->pool));
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

Times host_time(Cli *cli, const Host *host, double seconds, uint32_t least)
{
    Times times = {0};
    uint32_t capacity = 0;
    double begin = clock_seconds(), end = begin;

    while (times.count < least || (end - begin < seconds && times.count < MOST_RUNS)) {
        double start = clock_seconds();
        host_run(host);
        end = clock_seconds();
        ARENA_PUSH(&cli->arena, times.second, times.count, capacity, end - start);
    }
    qsort(times.second, times.count, sizeof *times.second, by_value);
    return times;
}

void host_close(Host *host)
{
    nnc_pool_free(host->pool);
    nnc_weights_close(&host->weights);
    nnc_arena_free(host->arena);
    nnc_state_free(host->state);
    nnc_params_free(host->params);
    if (host->library)
        dlclose(host->library);
    folder_remove(&host->folder);
}
