#include "onnx/import.h"

const OnnxRow onnx_sequence[] = {{0}};
