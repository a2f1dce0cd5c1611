#define T       double
#define F(name) name
#define TABLE   scalar_f64
#include "ops/scalar_float.h"
