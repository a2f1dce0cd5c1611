/* Any bytes as an .npy file: an error or a tensor, never a crash. */
#include "formats/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    Arena arena = {0};
    Diag diag = {.arena = &arena};
    npy_parse(module_new(&arena, &diag), STR("fuzz.npy"), bytes, size);
    diag_free(&diag);
    arena_free(&arena);
    return 0;
}
