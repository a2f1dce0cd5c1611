#include "onnx/import.h"

const OnnxRow onnx_recurrent[] = {{0}};
