/* What stands between products of matrices and the library that carries them out: the interface of CBLAS (BLAS
 * Technical Forum Standard, annex B), which OpenBLAS has, and BLIS, MKL and others. */
#include "c/prelude.h"

static const char comment[] =
    "/* Products of matrices are a library's: link with -lopenblas, or another that has CBLAS.  Rows of a matrix are "
    "so "
    "many\n"
    " * elements apart or, where that is negative, columns. */\n";

#define PRODUCT(letter, type, dtype)                                                                                   \
    "#ifdef __cplusplus\nextern \"C\"\n#endif\n"                                                                       \
    "void cblas_" letter                                                                                               \
    "gemm(int order, int left_transposed, int right_transposed, int rows, int columns, int "                           \
    "depth,\n"                                                                                                         \
    "                 " type " alpha, const " type " *left, int left_step, const " type                                \
    " *right, int right_step,\n"                                                                                       \
    "                 " type " beta, " type                                                                            \
    " *result, int step);\n\n"                                                                                         \
    "static void product_" dtype "(int rows, int columns, int depth, const " type                                      \
    " *left, int left_step,\n"                                                                                         \
    "                        const " type " *right, int right_step, " type                                             \
    " *result, int step)\n"                                                                                            \
    "{\n"                                                                                                              \
    "    enum { BY_ROWS = 101, AS_IT_IS = 111, TRANSPOSED = 112 };\n"                                                  \
    "    int left_is = left_step < 0 ? TRANSPOSED : AS_IT_IS, right_is = right_step < 0 ? TRANSPOSED : AS_IT_IS;\n"    \
    "    cblas_" letter                                                                                                \
    "gemm(BY_ROWS, left_is, right_is, rows, columns, depth, 1, left, left_step < 0 ? -left_step : left_step,\n"        \
    "                right, right_step < 0 ? -right_step : right_step, 0, result, step);\n"                            \
    "}\n\n"

void prelude_print_products(Text *out, const PreludeNeeds *needs)
{
    if (needs->product[DT_F32] || needs->product[DT_F64])
        text_str(out, str_from(comment));
    if (needs->product[DT_F32])
        text_str(out, STR(PRODUCT("s", "float", "f32")));
    if (needs->product[DT_F64])
        text_str(out, STR(PRODUCT("d", "double", "f64")));
}
