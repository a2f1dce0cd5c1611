#define T       float
#define F(name) name##f
#define TABLE   scalar_f32
#include "ops/scalar_float.h"
