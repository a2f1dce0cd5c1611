/* How long it takes to parse and print statements:
 *
 *     parse [STATEMENTS]
 *
 * Prints the best of five rounds for a flat graph as passes print it (every result typed) and for one as people write
 * it (operators, no types). */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "frontends/nnc/text.h"

static double seconds(void) /* of this process: others may share the core */
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void write_flat(Text *text, int statements)
{
    text_printf(text, "nnc 1\ngraph flat(x: f32[8, 64], w: f32[8, 64]) -> (y: f32[8, 64]) {\n");
    text_printf(text, "    %%2: f32[8, 64] = add(x, w)\n");
    for (int i = 3; i < statements + 2; i++) {
        text_printf(text, "    %%%d: f32[8, 64] = ", i);
        text_printf(text, i % 3 == 0 ? "mul(%%%d, 0.5)\n" : i % 3 == 1 ? "tanh(%%%d)\n" : "add(%%%d, w)\n", i - 1);
    }
    text_printf(text, "    y = %%%d\n}\n", statements + 1);
}

static void write_source(Text *text, int statements)
{
    text_printf(text, "nnc 1\nconst N = 8\ngraph source(x: f32[N, 64], w: f32[N, 64]) -> (y: f32[N, 64]) {\n");
    text_printf(text, "    layer.0 = x + w\n");
    for (int i = 1; i < statements; i++)
        text_printf(text, "    layer.%d = %s(layer.%d * 0.5 + w)   # a comment\n", i, i % 2 ? "tanh" : "relu", i - 1);
    text_printf(text, "    y = layer.%d\n}\n", statements - 1);
}

static void measure(const char *name, void (*write)(Text *, int), int statements)
{
    Text text = {0};
    double best = 1e9, best_print = 1e9;
    uint32_t nodes = 0;
    write(&text, statements);
    for (int round = 0; round < 5; round++) {
        Arena arena = {0};
        Diag diag = {.arena = &arena};
        Text out = {0};
        double begin = seconds();
        Module *module = nnc_parse(&arena, &diag, STR("bench.nnc"), text_view(&text), NULL, 0);
        double middle = seconds();
        if (!module) {
            fputs(diag.text.ptr, stderr);
            exit(1);
        }
        nnc_print(&out, module);
        double end = seconds();
        best = middle - begin < best ? middle - begin : best;
        best_print = end - middle < best_print ? end - middle : best_print;
        nodes = module->graph[0]->node_count;
        text_free(&out);
        diag_free(&diag);
        arena_free(&arena);
    }
    printf("%-8s %8d statements %8u nodes %8.1f KB   parse %7.3f s   print %7.3f s\n", name, statements, nodes,
           (double)text.len / 1e3, best, best_print);
    text_free(&text);
}

int main(int count, char **word)
{
    int statements = count > 1 ? atoi(word[1]) : 100000;
    measure("flat", write_flat, statements);
    measure("source", write_source, statements);
    return 0;
}
