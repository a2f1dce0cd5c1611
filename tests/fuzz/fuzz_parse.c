/* Any bytes as a model: errors, or a graph that verifies and whose text parses to the same text. */
#include "frontends/nnc/text.h"
#include "ir/verify.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check(bool good, const char *what, const Text *text)
{
    if (good)
        return;
    fprintf(stderr, "%s\n%s\n", what, text->ptr ? text->ptr : "");
    abort();
}

static Module *print_and_parse(Arena *arena, Diag *diag, const Module *module, Text *text)
{
    nnc_print(text, module);
    Module *again = nnc_parse(arena, diag, STR("again.nnc"), text_view(text), NULL, 0);
    check(again != NULL, diag->text.ptr, text);
    return again;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    Arena arena = {0};
    Diag diag = {.arena = &arena};
    Text first = {0}, second = {0};
    Str wrong = {0};
    Module *module = nnc_parse(&arena, &diag, STR("fuzz.nnc"), (Str){(const char *)bytes, (uint32_t)size}, NULL, 0);

    if (module) {
        for (uint32_t i = 0; i < module->graph_count; i++)
            check(graph_verify(module->graph[i], &arena, &wrong), "a broken graph", &first);
        Module *again = print_and_parse(&arena, &diag, module, &first);
        nnc_print(&second, again);
        check(str_eq(text_view(&first), text_view(&second)), "printed differently:", &first);
    }
    text_free(&first);
    text_free(&second);
    diag_free(&diag);
    arena_free(&arena);
    return 0;
}
