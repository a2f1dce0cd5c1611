/* Products of matrices, by a library or by tile registers (prelude: product.c, tiles.c). */
#include "c/expr.h"

static Str print_place(Printer *printer, uint32_t buffer, Index index)
{
    Str name = printer->names->buffer[buffer], at = print_index_of(printer, name, index);
    return str_is(at, "0") ? name : str_format(printer->arena, STR_FMT " + " STR_FMT, STR_ARG(name), STR_ARG(at));
}

static void print_library(Printer *printer, const Stmt *stmt)
{
    const MatrixProduct *p = stmt->product;
    const Expr *left = stmt->value->arg[0], *right = stmt->value->arg[1];
    Str from = print_place(printer, left->buffer, left->index), by = print_place(printer, right->buffer, right->index),
        to = print_place(printer, stmt->buffer, stmt->index);
    printer->needs->product[stmt->value->dtype] = true;
    print_line(printer, "product_%s(%lld, %lld, %lld, " STR_FMT ", %s%lld, " STR_FMT ", %s%lld, " STR_FMT ", %lld);",
               dtype_name(stmt->value->dtype), (long long)p->rows, (long long)p->columns, (long long)p->depth,
               STR_ARG(from), p->left_transposed ? "-" : "", (long long)p->left_stride, STR_ARG(by),
               p->right_transposed ? "-" : "", (long long)p->right_stride, STR_ARG(to), (long long)p->stride);
}

/* Rows of the sums and of the operands are so many elements apart; a tile is of whole vectors of 16 columns. */
static void print_tile_add(Printer *printer, const Stmt *stmt, Str sums)
{
    const MatrixProduct *p = stmt->product;
    const Expr *left = stmt->value->arg[0], *right = stmt->value->arg[1];
    Str x = print_place(printer, left->buffer, left->index), w = print_place(printer, right->buffer, right->index);
    print_line(printer, "tiles_add_%s(" STR_FMT ", " STR_FMT ", %lld, " STR_FMT ", %lld, %lld, %lld, %lld);",
               p->bundle == BUNDLE_BF16 ? "bf16" : "bytes", STR_ARG(sums), STR_ARG(x), (long long)p->left_stride,
               STR_ARG(w), (long long)p->right_stride, (long long)p->rows, (long long)p->columns / 16,
               (long long)p->depth / bundle_count(p->bundle));
}

static void print_tile_sums(Printer *printer, const Stmt *stmt)
{
    const MatrixProduct *p = stmt->product;
    const char *dtype = p->bundle == BUNDLE_BF16 ? "f32" : "i32";
    Str sums = print_place(printer, stmt->buffer, stmt->index), start = STR("NULL");
    printer->needs->tiles[p->bundle] = true;
    if (p->maker == PRODUCT_TILES_ADD) {
        print_tile_add(printer, stmt, sums);
        return;
    }
    if (p->maker == PRODUCT_TILES_BEGIN && stmt->value)
        start = print_place(printer, stmt->value->buffer, stmt->value->index);
    if (p->maker == PRODUCT_TILES_BEGIN)
        print_line(printer, "tiles_begin_%s(" STR_FMT ", " STR_FMT ", %lld, %lld);", dtype, STR_ARG(sums),
                   STR_ARG(start), (long long)p->rows, (long long)p->columns / 16);
    else
        print_line(printer, "tiles_end_%s(" STR_FMT ", %lld, %lld);", dtype, STR_ARG(sums), (long long)p->rows,
                   (long long)p->columns / 16);
}

void print_product(Printer *printer, const Stmt *stmt)
{
    stmt->product->maker == PRODUCT_LIBRARY ? print_library(printer, stmt) : print_tile_sums(printer, stmt);
}

void print_tiles(Printer *printer, const Stmt *stmt)
{
    const MatrixProduct *p = stmt->product;
    if (p)
        print_line(printer, "tiles_set(%lld, %lld);", (long long)p->rows,
                   (long long)p->depth / bundle_count(p->bundle));
    else
        print_line(printer, "tiles_release();");
}
