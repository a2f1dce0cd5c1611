/* Products of matrices by the tile registers of AMX: two by two tiles of sums, 32 rows by 32 columns at most, in
 * registers 0 to 3; a step of the depth of the first operand in 4 and 5, of the second in 6 and 7.
 *
 * A register is 16 rows of 64 bytes.  Without the instructions sums are in memory, and C gives the same bits: the sums
 * of a step of bf16 are made of even elements and of odd ones, then of both, then added to what there is. */
#include "c/prelude.h"

#include "runtime_nnc_cpu_tiles.h" /* cpu_tiles_text */

static const char shape_text[] =
    "/* Tile registers, for so many rows of 16 or 32 sums, and steps of so many words of 32 bits of the depth. */\n"
    "#if (defined(__AMX_TILE__) && defined(__AMX_INT8__) && defined(__AMX_BF16__)) || \\\n"
    "    (defined(__AMXTILE__) && defined(__AMXINT8__) && defined(__AMXBF16__)) /* older clang */\n"
    "#define NNC_TILES\n"
    "#define NNC_TILE(instruction, p, step)                                                                    \\\n"
    "    __asm__ volatile(instruction : : \"r\"(p), \"r\"((ptrdiff_t)(step)) : \"memory\")\n"
    "#endif\n\n"
    "static inline void tiles_set(int rows, int words)\n"
    "{\n"
    "#ifdef NNC_TILES\n"
    "    /* the palette; from 16 on bytes of rows, two for each register; from 48 on rows */\n"
    "    unsigned char shape[64] = {1};\n"
    "    const int upper = rows < 16 ? rows : 16, lower = rows - upper;\n"
    "    for (int i = 0; i < 8; i++) {\n"
    "        const int high = i > 5 ? words : i == 4 || i < 2 ? upper : lower;\n"
    "        shape[16 + 2 * i] = (unsigned char)(!high ? 0 : i == 4 || i == 5 ? 4 * words : 64);\n"
    "        shape[48 + i] = (unsigned char)high;\n"
    "    }\n"
    "    __asm__ volatile(\"ldtilecfg (%0)\" : : \"r\"(shape) : \"memory\");\n"
    "#else\n"
    "    (void)rows, (void)words;\n"
    "#endif\n"
    "}\n\n"
    "static inline void tiles_release(void)\n"
    "{\n"
    "#ifdef NNC_TILES\n"
    "    __asm__ volatile(\"tilerelease\");\n"
    "#endif\n"
    "}\n\n";

#define SUMS(name, type)                                                                                               \
    "/* All rows of the sums are `start`, or 0. */\n"                                                                  \
    "static inline void tiles_begin_" name "(" type " *sums, const " type                                              \
    " *start, int rows, int vectors)\n"                                                                                \
    "{\n"                                                                                                              \
    "#ifdef NNC_TILES\n"                                                                                               \
    "    (void)sums;\n"                                                                                                \
    "    if (!start) {\n"                                                                                              \
    "        __asm__ volatile(\"tilezero %tmm0\\n\\ttilezero %tmm1\");\n"                                              \
    "        if (rows > 16)\n"                                                                                         \
    "            __asm__ volatile(\"tilezero %tmm2\\n\\ttilezero %tmm3\");\n"                                          \
    "        return;\n"                                                                                                \
    "    }\n"                                                                                                          \
    "    NNC_TILE(\"tileloadd (%0,%1,1), %%tmm0\", start, 0);\n"                                                       \
    "    if (vectors > 1)\n"                                                                                           \
    "        NNC_TILE(\"tileloadd (%0,%1,1), %%tmm1\", start + 16, 0);\n"                                              \
    "    if (rows > 16)\n"                                                                                             \
    "        NNC_TILE(\"tileloadd (%0,%1,1), %%tmm2\", start, 0);\n"                                                   \
    "    if (rows > 16 && vectors > 1)\n"                                                                              \
    "        NNC_TILE(\"tileloadd (%0,%1,1), %%tmm3\", start + 16, 0);\n"                                              \
    "#else\n"                                                                                                          \
    "    for (int i = 0; i < rows; i++)\n"                                                                             \
    "        for (int j = 0; j < 16 * vectors; j++)\n"                                                                 \
    "            sums[i * 16 * vectors + j] = start ? start[j] : 0;\n"                                                 \
    "#endif\n"                                                                                                         \
    "}\n\n"                                                                                                            \
    "static inline void tiles_end_" name "(" type                                                                      \
    " *sums, int rows, int vectors)\n"                                                                                 \
    "{\n"                                                                                                              \
    "#ifdef NNC_TILES\n"                                                                                               \
    "    NNC_TILE(\"tilestored %%tmm0, (%0,%1,1)\", sums, 64 * vectors);\n"                                            \
    "    if (vectors > 1)\n"                                                                                           \
    "        NNC_TILE(\"tilestored %%tmm1, (%0,%1,1)\", sums + 16, 64 * vectors);\n"                                   \
    "    if (rows > 16)\n"                                                                                             \
    "        NNC_TILE(\"tilestored %%tmm2, (%0,%1,1)\", sums + 256 * vectors, 64 * vectors);\n"                        \
    "    if (rows > 16 && vectors > 1)\n"                                                                              \
    "        NNC_TILE(\"tilestored %%tmm3, (%0,%1,1)\", sums + 256 * vectors + 16, 64 * vectors);\n"                   \
    "#else\n"                                                                                                          \
    "    (void)sums, (void)rows, (void)vectors;\n"                                                                     \
    "#endif\n"                                                                                                         \
    "}\n\n"

#define ADD(name, type, x_type, w_type, instruction, by_c)                                                             \
    "/* Adds a step of the depth; rows of x are x_step elements apart, those of w w_step. */\n"                        \
    "static inline void tiles_add_" name "(" type " *sums, const " x_type " *x, ptrdiff_t x_step, const " w_type       \
    " *w,\n                                   ptrdiff_t w_step, int rows, int vectors, int words)\n"                   \
    "{\n"                                                                                                              \
    "#ifdef NNC_TILES\n"                                                                                               \
    "    const ptrdiff_t x_bytes = x_step * (ptrdiff_t)sizeof *x, w_bytes = w_step * (ptrdiff_t)sizeof *w;\n"          \
    "    (void)sums, (void)words;\n"                                                                                   \
    "    NNC_TILE(\"tileloadd (%0,%1,1), %%tmm6\", w, w_bytes);\n"                                                     \
    "    NNC_TILE(\"tileloadd (%0,%1,1), %%tmm4\", x, x_bytes);\n"                                                     \
    "    __asm__ volatile(\"" instruction                                                                              \
    " %tmm6, %tmm4, %tmm0\");\n"                                                                                       \
    "    if (rows > 16) {\n"                                                                                           \
    "        NNC_TILE(\"tileloadd (%0,%1,1), %%tmm5\", x + 16 * x_step, x_bytes);\n"                                   \
    "        __asm__ volatile(\"" instruction                                                                          \
    " %tmm6, %tmm5, %tmm2\");\n"                                                                                       \
    "    }\n"                                                                                                          \
    "    if (vectors > 1) {\n"                                                                                         \
    "        NNC_TILE(\"tileloadd (%0,%1,1), %%tmm7\", w + 64 / sizeof *w, w_bytes);\n"                                \
    "        __asm__ volatile(\"" instruction                                                                          \
    " %tmm7, %tmm4, %tmm1\");\n"                                                                                       \
    "    }\n"                                                                                                          \
    "    if (rows > 16 && vectors > 1)\n"                                                                              \
    "        __asm__ volatile(\"" instruction                                                                          \
    " %tmm7, %tmm5, %tmm3\");\n"                                                                                       \
    "#else\n"                                                                                                          \
    "    for (int i = 0; i < rows; i++, sums += 16 * vectors, x += x_step)\n"                                          \
    "        for (int j = 0; j < 16 * vectors; j++) {\n" by_c                                                          \
    "        }\n"                                                                                                      \
    "#endif\n"                                                                                                         \
    "}\n\n"

static const char bytes_text[] =
    SUMS("i32", "int32_t") ADD("bytes", "int32_t", "uint8_t", "int8_t", "tdpbusd",
                               "            int32_t sum = 0;\n"
                               "            for (int k = 0; k < 4 * words; k++)\n"
                               "                sum += x[k] * w[k / 4 * w_step + 4 * j + k % 4];\n"
                               "            sums[j] = (int32_t)((uint32_t)sums[j] + (uint32_t)sum);\n");

static const char bf16_text[] =
    SUMS("f32", "float") ADD("bf16", "float", "uint16_t", "uint16_t", "tdpbf16ps",
                             "            float sum[2] = {0, 0};\n"
                             "            for (int k = 0; k < 2 * words; k++) {\n"
                             "                const uint32_t bits[2] = {(uint32_t)x[k] << 16, "
                             "(uint32_t)w[k / 2 * w_step + 2 * j + k % 2] << 16};\n"
                             "                float number[2];\n"
                             "                memcpy(number, bits, sizeof number);\n"
                             "                sum[k % 2] += number[0] * number[1];\n"
                             "            }\n"
                             "            sums[j] += sum[0] + sum[1];\n");

static const char granted_text[] =
    "/* Is there what tiles need?  The system is asked once; threads that ask at the same time learn the same. */\n"
    "static int tiles_granted(void)\n"
    "{\n"
    "#ifdef NNC_TILES\n"
    "    static int known; /* 1: yes, -1: no */\n"
    "    int granted = __atomic_load_n(&known, __ATOMIC_RELAXED);\n"
    "    if (!granted) {\n"
    "        granted = nnc_cpu_tiles() ? 1 : -1;\n"
    "        __atomic_store_n(&known, granted, __ATOMIC_RELAXED);\n"
    "    }\n"
    "    return granted > 0;\n"
    "#else\n"
    "    return 1;\n"
    "#endif\n"
    "}\n\n";

bool prelude_has_tiles(const PreludeNeeds *needs)
{
    return needs->tiles[BUNDLE_BYTES] || needs->tiles[BUNDLE_BF16];
}

void prelude_print_tiles(Text *out, const PreludeNeeds *needs)
{
    if (!prelude_has_tiles(needs))
        return;
    text_str(out, str_from(shape_text));
    text_printf(out, "#ifdef NNC_TILES\n%s#endif\n\n%s", cpu_tiles_text, granted_text);
    if (needs->tiles[BUNDLE_BYTES])
        text_str(out, str_from(bytes_text));
    if (needs->tiles[BUNDLE_BF16])
        text_str(out, str_from(bf16_text));
}
