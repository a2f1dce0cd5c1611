/* Any bytes as a .safetensors file: an error or a list of tensors that lie within the bytes, never a crash. */
#include "formats/safetensors.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    Arena arena = {0};
    Diag diag = {.arena = &arena};
    Safetensors file;
    if (safetensors_parse(&arena, &diag, STR("fuzz"), bytes, size, &file))
        for (uint32_t i = 0; i < file.count; i++)
            if (file.tensor[i].begin > file.tensor[i].end || file.tensor[i].end > size)
                abort();
    diag_free(&diag);
    arena_free(&arena);
    return 0;
}
