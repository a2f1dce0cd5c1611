#include "onnx/import.h"

const OnnxRow onnx_control[] = {{0}};
