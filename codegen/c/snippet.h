/* The helpers' texts.  One text serves the scalar and the vector form, so that both give the same bits.
 *
 * In a text these stand for the form at hand:
 *   F I U   float, int and unsigned of the form: float, int32_t, uint32_t, or f32x16, i32x16, u32x16
 *   T       the element type (int64_t ...), where the text serves several dtypes
 *   LANES   the number of lanes
 *   NANS    bits that make NaN of a number where a is
 *   WIDE    what a compiler defines that has vectors of so many lanes
 *   ROUNDS  the instruction that rounds them
 *   HALVES  what a compiler defines that makes f16 of them
 *   PAIRED  what a compiler defines that multiplies pairs of i16 in one instruction
 *   DOTS    what it defines that adds up their products in it, too, by the instruction SUMS_PAIRS
 *   SUMS_BYTES, BRAIN_DOTS  that of bytes; and what it defines that does so with bf16
 *   EVENS   the numbers of p[0], p[2], ... in the vectors from p and from p + LANES - 1
 *   UNALIGNED the vector type at any address of a float
 *   BYTES, UNALIGNED_BYTES  a vector of as many bytes, and at any address
 *   EACH(a) a for every lane, # being its number
 *   TREE(e) combines the lanes of x: y is x with its halves exchanged, x = e, then the same with quarters ...
 *   TREE_I(e)  the same of an x of integers
 *   name$   the helper `name` in this form: exp$ is exp_f32 or exp_f32x16; it is printed first
 *   name@   the helper `name` for a scalar f32
 * A comparison of F gives a mask (I): of scalars 0 or 1, of vectors 0 or -1.  Masks are combined with & and |.
 *
 * A compiler may contract a * b + c to a fused multiply-add or not.  So that all forms agree, no sum adds two products
 * that both round. */
#ifndef NNC_C_SNIPPET_H
#define NNC_C_SNIPPET_H

typedef enum SnippetForm {
    SNIPPET_F32 = 1,
    SNIPPET_F64 = 2,
    SNIPPET_SIGNED = 4,
    SNIPPET_UNSIGNED = 8, /* and bool */
    SNIPPET_VECTOR = 16,
    SNIPPET_PLAIN = 32, /* conversions: named in full */
    SNIPPET_LANES = 64, /* a structure of four floats */
    SNIPPET_ANY_F32 = SNIPPET_F32 | SNIPPET_VECTOR,
    SNIPPET_SCALAR = SNIPPET_F32 | SNIPPET_F64 | SNIPPET_SIGNED | SNIPPET_UNSIGNED,
} SnippetForm;

typedef struct Snippet {
    const char *name;
    unsigned forms;
    const char *text;
} Snippet;

/* Each ends with a null name.  Those of the device stand before the others where CUDA prints them. */
extern const Snippet snippet_basic[], snippet_narrow[], snippet_math[], snippet_random[], snippet_device[];
extern const Snippet snippet_bundles[], snippet_lanes[], snippet_operators[];

#endif
