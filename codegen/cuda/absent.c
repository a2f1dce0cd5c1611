/* Stands in for the CUDA target until it is there. */
#include "program.h"

bool emit_cuda(const Program *program, Text *source, Text *header)
{
    (void)source, (void)header;
    return diag_error(program->graph->module->diag, (Place){0}, "this build has no CUDA target");
}
