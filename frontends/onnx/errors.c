/* Errors of the whole model. */
#include "onnx/import.h"

bool onnx_fail(Onnx *onnx, const char *format, ...)
{
    Text text = {0};
    va_list args;
    va_start(args, format);
    text_vprintf(&text, format, args);
    va_end(args);
    onnx->failed = true;
    diag_file_error(onnx->diag, onnx->path, "%s", text.ptr);
    text_free(&text);
    return false;
}
