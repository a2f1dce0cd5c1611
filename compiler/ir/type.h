/* Types: dtype, shape and layout of a tensor.  Types are hash-consed by their module, so equality is pointer equality.
 */
#ifndef NNC_IR_TYPE_H
#define NNC_IR_TYPE_H

#include "base/map.h"

#define MAX_RANK 8

typedef enum DType {
    DT_F64,
    DT_F32,
    DT_F16,
    DT_BF16,
    DT_I64,
    DT_I32,
    DT_I16,
    DT_I8,
    DT_U64,
    DT_U32,
    DT_U16,
    DT_U8,
    DT_BOOL,
    DT_COUNT
} DType;

typedef struct Shape {
    uint32_t rank; /* 0 is a scalar */
    int64_t dim[MAX_RANK];
} Shape;

/* How the elements of a shape lie in memory.  Plain is row-major.  A blocked layout cuts dimension 1 (channels) into
 * blocks of `block`, the last one padded, and puts the block innermost: NCHW16c is [N][ceil(C/16)][H][W][16], and
 * NCW16c [N][ceil(C/16)][W][16]. */
typedef struct Layout {
    uint32_t block; /* 0 is plain */
} Layout;

typedef struct Type {
    DType dtype;
    Layout layout;
    Shape shape;
} Type;

typedef struct TypeTable {
    Map map;
    const Type **type;
    uint32_t count, capacity;
} TypeTable;

const Type *type_intern(TypeTable *table, DType dtype, const Shape *shape, Layout layout);

const char *dtype_name(DType dtype);
bool dtype_parse(Str name, DType *dtype);
uint32_t dtype_bytes(DType dtype);
bool dtype_is_float(DType dtype);
static inline bool dtype_is_half(DType dtype) /* of 16 bits, computed in f32 */
{
    return dtype == DT_F16 || dtype == DT_BF16;
}
bool dtype_is_int(DType dtype);      /* i64 ... u8; not bool */
bool dtype_is_unsigned(DType dtype); /* u64 ... u8; not bool */

Shape shape_of(uint32_t rank, const int64_t *dim);
bool shape_eq(const Shape *a, const Shape *b);
int64_t shape_elements(const Shape *shape); /* the product of the dims; shapes are checked on creation */
bool shape_checked_elements(const Shape *shape, int64_t *elements);  /* false on overflow or a negative dim */
bool shape_broadcast(const Shape *a, const Shape *b, Shape *result); /* NumPy's rule */

int64_t type_bytes(const Type *type); /* as laid out in memory, padding of blocks included */

/* How a layout calls the dimensions of a shape of so many: "NCW", "NCHW"; NULL where there are no blocks. */
const char *type_layout_dimensions(uint32_t rank);

/* `f32[1, 32, 28, 28]{NCHW16c}`, as the language writes it. */
void type_print(Text *out, const Type *type);
Str type_show(Arena *arena, const Type *type);

#endif
