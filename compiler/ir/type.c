#include "ir/type.h"

#include <string.h>

typedef struct DTypeRow {
    const char *name;
    uint32_t bytes;
    bool is_float, is_int;
} DTypeRow;

static const DTypeRow dtype_table[DT_COUNT] = {
    [DT_F64] = {"f64", 8, true, false},    [DT_F32] = {"f32", 4, true, false}, [DT_F16] = {"f16", 2, true, false},
    [DT_BF16] = {"bf16", 2, true, false},  [DT_I64] = {"i64", 8, false, true}, [DT_I32] = {"i32", 4, false, true},
    [DT_I16] = {"i16", 2, false, true},    [DT_I8] = {"i8", 1, false, true},   [DT_U8] = {"u8", 1, false, true},
    [DT_U64] = {"u64", 8, false, true},    [DT_U32] = {"u32", 4, false, true}, [DT_U16] = {"u16", 2, false, true},
    [DT_BOOL] = {"bool", 1, false, false},
};

const char *dtype_name(DType dtype)
{
    return dtype_table[dtype].name;
}

bool dtype_parse(Str name, DType *dtype)
{
    for (int i = 0; i < DT_COUNT; i++)
        if (str_is(name, dtype_table[i].name)) {
            *dtype = (DType)i;
            return true;
        }
    return false;
}

uint32_t dtype_bytes(DType dtype)
{
    return dtype_table[dtype].bytes;
}

bool dtype_is_float(DType dtype)
{
    return dtype_table[dtype].is_float;
}

bool dtype_is_int(DType dtype)
{
    return dtype_table[dtype].is_int;
}

bool dtype_is_unsigned(DType dtype)
{
    return dtype >= DT_U64 && dtype <= DT_U8;
}

Shape shape_of(uint32_t rank, const int64_t *dim)
{
    Shape shape = {.rank = rank};
    for (uint32_t i = 0; i < rank; i++)
        shape.dim[i] = dim[i];
    return shape;
}

bool shape_eq(const Shape *a, const Shape *b)
{
    return a->rank == b->rank && memcmp(a->dim, b->dim, a->rank * sizeof a->dim[0]) == 0;
}

int64_t shape_elements(const Shape *shape)
{
    int64_t elements = 1;
    for (uint32_t i = 0; i < shape->rank; i++)
        elements *= shape->dim[i];
    return elements;
}

/* Leaves room for eight bytes an element and for the padding of blocked layouts. */
#define MOST_ELEMENTS (INT64_MAX / 1024)

bool shape_checked_elements(const Shape *shape, int64_t *elements)
{
    int64_t product = 1;
    bool empty = false;
    for (uint32_t i = 0; i < shape->rank; i++) {
        int64_t dim = shape->dim[i];
        if (dim < 0 || dim > MOST_ELEMENTS)
            return false;
        empty |= dim == 0;
        if (dim > 0 && product > MOST_ELEMENTS / dim)
            return false;
        product *= dim ? dim : 1;
    }
    *elements = empty ? 0 : product;
    return true;
}

bool shape_broadcast(const Shape *a, const Shape *b, Shape *result)
{
    Shape out = {.rank = a->rank > b->rank ? a->rank : b->rank};
    for (uint32_t i = 0; i < out.rank; i++) { /* i counts from the last dimension */
        int64_t da = i < a->rank ? a->dim[a->rank - 1 - i] : 1;
        int64_t db = i < b->rank ? b->dim[b->rank - 1 - i] : 1;
        if (da != db && da != 1 && db != 1)
            return false;
        out.dim[out.rank - 1 - i] = da == 1 ? db : da;
    }
    *result = out;
    return true;
}

const Type *type_intern(TypeTable *table, DType dtype, const Shape *shape, Layout layout)
{
    Type type; /* a key without stray bytes: cleared as a whole, unused dims zero */
    memset(&type, 0, sizeof type);
    type.dtype = dtype;
    type.layout = layout;
    type.shape.rank = shape->rank;
    memcpy(type.shape.dim, shape->dim, shape->rank * sizeof shape->dim[0]);

    uint32_t index = map_get(&table->map, map_key(&type, sizeof type));
    if (index != MAP_NONE)
        return table->type[index];
    const Type *kept = arena_copy(table->map.arena, &type, sizeof type);
    map_put(&table->map, map_key(kept, sizeof *kept), table->count);
    ARENA_PUSH(table->map.arena, table->type, table->count, table->capacity, kept);
    return kept;
}

int64_t type_bytes(const Type *type)
{
    Shape shape = type->shape;
    if (type->layout.block) {
        int64_t block = type->layout.block;
        shape.dim[1] = (shape.dim[1] + block - 1) / block * block;
    }
    return shape_elements(&shape) * dtype_bytes(type->dtype);
}

const char *type_layout_dimensions(uint32_t rank)
{
    return rank == 3 ? "NCW" : rank == 4 ? "NCHW" : NULL;
}

void type_print(Text *out, const Type *type)
{
    text_printf(out, "%s[", dtype_name(type->dtype));
    for (uint32_t i = 0; i < type->shape.rank; i++)
        text_printf(out, "%s%lld", i ? ", " : "", (long long)type->shape.dim[i]);
    text_char(out, ']');
    if (type->layout.block)
        text_printf(out, "{%s%uc}", type_layout_dimensions(type->shape.rank), type->layout.block);
}

Str type_show(Arena *arena, const Type *type)
{
    Text text = {0};
    type_print(&text, type);
    Str shown = str_copy(arena, text_view(&text));
    text_free(&text);
    return shown;
}
