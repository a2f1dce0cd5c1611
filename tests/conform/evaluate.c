/* Runs a model on the reference evaluator, with no pass in between, in the words of `nnc run`:
 *
 *     evaluate run MODEL --target reference --input NAME=FILE.npy ... --output NAME=FILE.npy ...
 *     evaluate ops
 */
#include <stdio.h>
#include <string.h>

#include "formats/npy.h"
#include "nnc/text.h"
#include "ops/doc.h"
#include "ops/family.h"
#include "passes/pass.h"

typedef struct Binding { /* NAME=FILE */
    Str name, file;
} Binding;

static Binding split(const char *word)
{
    size_t length = strcspn(word, "=");
    return (Binding){{word, (uint32_t)length}, str_from(word + length + (word[length] != 0))};
}

/* The file that --input or --output gives for a name; empty when none does. */
static Str file_for(int count, char **word, const char *flag, Str name)
{
    for (int i = 3; i + 1 < count; i++)
        if (strcmp(word[i], flag) == 0 && str_eq(split(word[i + 1]).name, name))
            return split(word[i + 1]).file;
    return (Str){0};
}

static bool run(Arena *arena, Diag *diag, int count, char **word)
{
    Module *module = nnc_parse_file(arena, diag, str_from(word[2]), NULL, 0);
    if (!module)
        return false;
    Graph *graph = module->graph[0];
    const Tensor **in = ARENA_ARRAY(arena, const Tensor *, graph->input_count);
    const Tensor **out = ARENA_ARRAY(arena, const Tensor *, graph->output_count);

    for (uint32_t i = 0; i < graph->input_count; i++) {
        Str path = file_for(count, word, "--input", value_show(graph, graph->input[i]));
        in[i] = npy_read(module, path);
        if (!in[i])
            return false;
        if (in[i]->type != value_type(graph, graph->input[i]))
            return diag_file_error(diag, path, "another type than the model's input");
    }
    Graph *reference = pass_reference(graph);
    if (!reference)
        return false;
    eval_graph(reference, arena, in, out, NULL);
    for (uint32_t i = 0; i < graph->output_count; i++)
        if (!npy_write(diag, file_for(count, word, "--output", graph->output[i].name), out[i]))
            return false;
    return true;
}

int main(int count, char **word)
{
    Arena arena = {0};
    Diag diag = {.arena = &arena};
    Text table = {0};
    bool fine = true;

    if (count > 2 && strcmp(word[1], "run") == 0) {
        fine = run(&arena, &diag, count, word);
        if (diag.text.len)
            fputs(diag.text.ptr, stderr);
    } else {
        ops_print_table(&table, 100);
        fputs(table.ptr, stdout);
    }
    text_free(&table);
    diag_free(&diag);
    arena_free(&arena);
    return fine ? 0 : 1;
}
