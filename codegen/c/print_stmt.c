/* Statements of the loop IR as C. */
#include "c/expr.h"

#include "c/source.h"

#include <assert.h>
#include <string.h>

#define MOST_UNROLLED 8 /* rounds of a loop that C compilers may unroll */

static const char *vector_type(const Printer *printer, DType dtype)
{
    return str_format(printer->arena, "%s%u", dtype == DT_BOOL || dtype == DT_I32 ? "i32x" : "f32x", printer->lanes)
        .ptr;
}

/* Statements */

static void declare_position(Printer *printer, const Local *local, Str name, Index value)
{
    bool assigned = printer->assigned[local->id], held = printer->holds && !assigned;
    Str text = print_index_of(printer, str_from(local->name), value);
    if (print_is_wide(printer, value))
        text = print_narrowed(printer, text);
    print_line(printer, "%s%s " STR_FMT " = " STR_FMT ";", assigned || held ? "" : "const ", print_index_type(printer),
               STR_ARG(name), STR_ARG(text));
    if (held)
        print_line(printer, "NNC_HELD(" STR_FMT ");", STR_ARG(name));
}

static void declare(Printer *printer, const Local *local, Index i, Index j, const Expr *value)
{
    bool vector = local->lanes && printer->lane;
    const char *type = vector ? vector_type(printer, local->dtype) : prelude_c_type(local->dtype);
    const char *fixed = value && !printer->assigned[local->id] ? "const " : "";
    Str name = print_local(printer, local, i, j);
    if (value->kind == EXPR_INDEX && local->dtype == DT_I64 && !local->lanes) {
        declare_position(printer, local, name, value->index);
        return;
    }
    Str text = (vector ? print_vector : print_scalar)(printer, value);
    print_line(printer, "%s%s " STR_FMT " = " STR_FMT ";", fixed, type, STR_ARG(name), STR_ARG(text));
}

/* Names without values: one line for each row of registers. */
static void declare_row(Printer *printer, const Local *local, int64_t i)
{
    bool vector = local->lanes && printer->lane;
    Text names = {0};
    for (int64_t j = 0; j < (local->extent[0] ? local->extent[1] : 1); j++)
        text_printf(&names, "%s" STR_FMT, j ? ", " : "",
                    STR_ARG(print_local(printer, local, index_constant(i), index_constant(j))));
    print_line(printer, "%s %s;", vector ? vector_type(printer, local->dtype) : prelude_c_type(local->dtype),
               names.ptr);
    text_free(&names);
}

/* Without a value, or full of zeros. */
static void declare_array(Printer *printer, const Local *local, const Expr *value)
{
    assert(!value || (value->kind == EXPR_NUMBER && value->number == 0));
    Str columns = local->extent[1] > 1 ? str_format(printer->arena, "[%lld]", (long long)local->extent[1]) : STR("");
    print_line(printer, "%s " STR_FMT "[%lld]" STR_FMT "%s;", prelude_c_type(local->dtype),
               STR_ARG(printer->local_name[local->id]), (long long)local->extent[0], STR_ARG(columns),
               value ? " = {}" : "");
}

static void print_declaration(Printer *printer, const Stmt *stmt)
{
    const Local *local = stmt->local;
    print_name_local(printer, local);
    if (local->array) {
        declare_array(printer, local, stmt->value);
        return;
    }
    if (!stmt->value) {
        for (int64_t i = 0; i < (local->extent[0] ? local->extent[0] : 1); i++)
            declare_row(printer, local, i);
        return;
    }
    if (!local->extent[0]) {
        declare(printer, local, index_constant(0), index_constant(0), stmt->value);
        return;
    }
    for (int64_t i = 0; i < local->extent[0]; i++)
        for (int64_t j = 0; j < local->extent[1]; j++)
            declare(printer, local, index_constant(i), index_constant(j), stmt->value);
}

static bool is_this_local(const Expr *expr, const Stmt *stmt)
{
    return expr->kind == EXPR_LOCAL && expr->local == stmt->local && index_eq(expr->index, stmt->index) &&
           index_eq(expr->index2, stmt->index2);
}

static void print_assign(Printer *printer, const Stmt *stmt)
{
    Str name = print_local(printer, stmt->local, stmt->index, stmt->index2);
    bool vector = stmt->local->lanes && printer->lane;
    const Expr *value = stmt->value;
    bool adds = value->kind == EXPR_WORD && value->word == WORD_ADD && is_this_local(value->arg[0], stmt) &&
                dtype_is_float(value->dtype) && !(vector && printer->target->dialect == DIALECT_C99);
    if (adds) {
        Str added = print_expr(printer, value->arg[1]).text;
        print_line(printer, STR_FMT " += " STR_FMT ";", STR_ARG(name), STR_ARG(added));
        return;
    }
    Str text = (vector ? print_vector : print_scalar)(printer, value);
    print_line(printer, STR_FMT " = " STR_FMT ";", STR_ARG(name), STR_ARG(text));
}

/* `store_2_f32x16(y + at, v0, v1);` */
static void print_store_together(Printer *printer, const Stmt *stmt, Str to)
{
    static const Helper helper[] = {
        [2] = HELPER_STORE_2, [3] = HELPER_STORE_3, [4] = HELPER_STORE_4, [6] = HELPER_STORE_6, [8] = HELPER_STORE_8};
    const char *store = prelude_need(printer->needs, printer->arena, helper[stmt->together], DT_F32, printer->lanes);
    Str shown = STR("");
    for (uint32_t r = 0; r < stmt->together; r++) {
        const Expr *value = expr_local_at(printer->arena, stmt->value->local, index_constant(0), index_constant(r));
        shown =
            str_format(printer->arena, STR_FMT ", " STR_FMT, STR_ARG(shown), STR_ARG(print_expr(printer, value).text));
    }
    print_line(printer, "%s(" STR_FMT STR_FMT ");", store, STR_ARG(to), STR_ARG(shown));
}

static void print_number_store(Printer *printer, Str name, Str at, const Expr *value)
{
    Str shown = print_scalar(printer, value);
    print_line(printer, STR_FMT "[" STR_FMT "] = " STR_FMT ";", STR_ARG(name), STR_ARG(at), STR_ARG(shown));
}

/* Of one number; of vectors the helper stores all. */
static void print_parts(Printer *printer, const Stmt *stmt, Str name)
{
    Arena *arena = printer->arena;
    const Expr *value = stmt->value;
    for (int64_t part = 1; part < stmt->parts; part++) {
        const Expr *nearest = expr_cast(arena, DT_F32, value);
        Index at = index_add(arena, stmt->index, index_constant(part * stmt->rest));
        value = expr_cast(arena, DT_BF16, expr_word(arena, WORD_SUB, DT_F32, value->arg[0], nearest, NULL));
        print_number_store(printer, name, print_index_of(printer, name, at), value);
    }
}

static void print_store(Printer *printer, const Stmt *stmt)
{
    int64_t factor;
    Str name = printer->names->buffer[stmt->buffer], base = print_base(printer, name, stmt->index, &factor);
    Str plus =
        str_is(base, "0") ? name : str_format(printer->arena, STR_FMT " + " STR_FMT, STR_ARG(name), STR_ARG(base));
    if (stmt->together) {
        print_store_together(printer, stmt, plus);
        return;
    }
    if (!factor) {
        print_number_store(printer, name, base, stmt->value);
        print_parts(printer, stmt, name);
        return;
    }
    static const Helper narrowing[DT_COUNT] = {
        [DT_BOOL] = HELPER_STORE_MASK, [DT_F16] = HELPER_STORE_F16, [DT_BF16] = HELPER_STORE_BF16,
        [DT_I8] = HELPER_STORE_I8,     [DT_U8] = HELPER_STORE_U8,   [DT_I16] = HELPER_STORE_I16,
        [DT_U16] = HELPER_STORE_U16,   [DT_I32] = HELPER_STORE_I32, [DT_I64] = HELPER_STORE_I64};
    const Expr *value = stmt->value;
    bool words = value->dtype == DT_I32 && value->kind != EXPR_CAST;
    Helper helper = stmt->parts               ? HELPER_STORE_PARTS
                    : words                   ? HELPER_STORE_WORDS
                    : narrowing[value->dtype] ? narrowing[value->dtype]
                    : factor == 1             ? HELPER_STORE
                                              : HELPER_SCATTER;
    const char *store = prelude_need(printer->needs, printer->arena, helper, DT_F32, printer->lanes);
    if (value->dtype == DT_I64) /* of i32 */
        value = value->arg[0];
    if (narrowing[value->dtype] && value->dtype != DT_BOOL && value->kind == EXPR_CAST) /* the store rounds, or cuts */
        value = value->arg[0];
    Str shown = print_vector(printer, value);
    Str stride = stmt->parts   ? str_format(printer->arena, "%u, %lld", stmt->parts, (long long)stmt->rest)
                 : factor == 1 ? STR("")
                               : print_lane_stride(printer, name, factor);
    print_line(printer, "%s(" STR_FMT "%s" STR_FMT ", " STR_FMT ");", store, STR_ARG(plus), stride.len ? ", " : "",
               STR_ARG(stride), STR_ARG(shown));
}

const char *print_meet_name(Word word)
{
    return word == WORD_ADD   ? "block_sum"
           : word == WORD_MUL ? "block_product"
           : word == WORD_MAX ? "block_max"
                              : "block_min";
}

/* total = total combined with all lanes of value */
static void print_reduce(Printer *printer, const Stmt *stmt)
{
    static const struct {
        Word word;
        Helper across, join;
        const char *operator;
    } rows[] = {{WORD_ADD, HELPER_SUM, HELPER_COUNT, "+"},
                {WORD_MUL, HELPER_PRODUCT, HELPER_COUNT, "*"},
                {WORD_MAX, HELPER_LARGEST, HELPER_MAX, NULL},
                {WORD_MIN, HELPER_LEAST, HELPER_MIN, NULL}};
    uint32_t r = 0;
    while (rows[r].word != stmt->word)
        r++;
    Str total = print_local(printer, stmt->local, stmt->index, stmt->index2);
    Str lanes = print_expr(printer, stmt->value).text;
    Str value = str_format(printer->arena, "%s(" STR_FMT ")",
                           prelude_need(printer->needs, printer->arena, rows[r].across, DT_F32, printer->lanes),
                           STR_ARG(lanes));
    if (rows[r].operator)
        print_line(printer, STR_FMT " %s= " STR_FMT ";", STR_ARG(total), rows[r].operator, STR_ARG(value));
    else
        print_line(printer, STR_FMT " = %s(" STR_FMT ", " STR_FMT ");", STR_ARG(total),
                   prelude_need(printer->needs, printer->arena, rows[r].join, stmt->local->dtype, 1), STR_ARG(total),
                   STR_ARG(value));
}

static Str clamped(Printer *printer, Index bound, Index other, char side)
{
    Str a = print_index(printer, bound), b = print_index(printer, other);
    Str shown = str_format(printer->arena, STR_FMT " %c " STR_FMT " ? " STR_FMT " : " STR_FMT, STR_ARG(b), side,
                           STR_ARG(a), STR_ARG(b), STR_ARG(a));
    return print_is_wide(printer, bound) || print_is_wide(printer, other) ? print_narrowed(printer, shown) : shown;
}

static Str first_position(Printer *printer, Index low)
{
    Str shown = print_index(printer, low);
    return print_is_wide(printer, low) ? print_narrowed(printer, shown) : shown;
}

static bool has_loops(const Block *block)
{
    bool has = false;
    for (const Stmt *stmt = block->first; stmt && !has; stmt = stmt->next)
        has = stmt->kind == STMT_FOR || has_loops(&stmt->body) || has_loops(&stmt->other);
    return has;
}

/* May C compilers unroll it, since it holds no other and has few rounds? */
static bool unrolls(const Printer *printer, const Stmt *stmt)
{
    return printer->innermost && !stmt->low.count && !stmt->high.count && stmt_rounds(stmt) <= MOST_UNROLLED;
}

static void print_bounds(Printer *printer, const Stmt *stmt, Str *low, Str *high)
{
    Constants *constants = printer->constants;
    if (unrolls(printer, stmt))
        printer->constants = NULL;
    printer->place = (Constant){.kind = CONSTANT_BEGIN, .along = stmt->var->name};
    *low = stmt->clamp_low ? clamped(printer, stmt->low, stmt->low_least, '>') : first_position(printer, stmt->low);
    printer->place.kind = CONSTANT_END;
    *high = stmt->clamp_high ? clamped(printer, stmt->high, stmt->high_most, '<') : print_index(printer, stmt->high);
    printer->constants = constants;
}

static void print_for(Printer *printer, const Stmt *stmt)
{
    const char *type = print_index_type(printer);
    bool innermost = printer->innermost;
    printer->innermost = !has_loops(&stmt->body);
    Str low, high;
    print_bounds(printer, stmt, &low, &high);
    Str var = print_push(printer, stmt->var);
    Str end = STR("");
    if (stmt->clamp_high) {
        end = str_format(printer->arena, ", " STR_FMT "_end = " STR_FMT, STR_ARG(var), STR_ARG(high));
        high = str_format(printer->arena, STR_FMT "_end", STR_ARG(var));
    }
    Str step = stmt->step == 1 ? str_format(printer->arena, STR_FMT "++", STR_ARG(var))
                               : str_format(printer->arena, STR_FMT " += %lld", STR_ARG(var), (long long)stmt->step);
    if (stmt->loop == LOOP_ROLLED && printer->target->dialect == DIALECT_VECTOR)
        text_printf(printer->out, "#pragma GCC unroll 1\n");
    if (stmt->loop == LOOP_UNROLLED)
        print_line(printer, "#pragma unroll");
    bool rolled = stmt->loop == LOOP_ROLLED && printer->target->dialect == DIALECT_C99;
    printer->needs->rolled |= rolled;
    print_line(printer, "%sfor (%s " STR_FMT " = " STR_FMT STR_FMT "; " STR_FMT " < " STR_FMT "; " STR_FMT ") {",
               rolled ? "NNC_ROLLED " : "", type, STR_ARG(var), STR_ARG(low), STR_ARG(end), STR_ARG(var), STR_ARG(high),
               STR_ARG(step));
    printer->indent++;
    print_block(printer, &stmt->body);
    printer->indent--;
    print_line(printer, "}");
    printer->depth--;
    printer->innermost = innermost;
}

/* The braces of the statement around a region serve for it too where it is all that stands there. */
static void print_lanes(Printer *printer, const Stmt *stmt)
{
    bool braces = !printer->alone;
    assert(!printer->lane && printer->target->dialect != DIALECT_CUDA);
    printer->lane = stmt->var;
    printer->lanes = stmt->lanes;
    print_push(printer, stmt->var);
    if (braces)
        print_line(printer, "{");
    printer->indent += braces;
    print_block(printer, &stmt->body);
    printer->indent -= braces;
    if (braces)
        print_line(printer, "}");
    printer->depth--;
    printer->lane = NULL;
}

/* The truth that is all that the condition asks for, or NULL. */
static const Expr *truth_of(const Stmt *stmt)
{
    const Index *index = &stmt->index;
    const Atom *atom = index->count == 1 && !index->constant && index->term->factor == 1 ? index->term->atom : NULL;
    bool truth = atom && atom->kind == ATOM_DATA && atom->data->dtype == DT_BOOL;
    return truth && stmt->low.constant == 1 && stmt->high.constant == 2 ? atom->data : NULL;
}

static bool tests_low(const Stmt *stmt)
{
    return index_low(stmt->index) < stmt->low.constant;
}

static bool tests_high(const Stmt *stmt)
{
    return index_high(stmt->index) >= stmt->high.constant;
}

static bool always_holds(const Stmt *stmt)
{
    return !truth_of(stmt) && !tests_low(stmt) && !tests_high(stmt);
}

static Str print_test(Printer *printer, const Stmt *stmt)
{
    const Expr *truth = truth_of(stmt);
    Str index = truth ? print_expr(printer, truth).text : print_index_of(printer, (Str){0}, stmt->index);
    printer->place = (Constant){.kind = CONSTANT_LIMIT};
    Str low = print_index(printer, stmt->low), high = print_index(printer, stmt->high);
    if (truth)
        return index;
    if (tests_low(stmt) && tests_high(stmt))
        return str_format(printer->arena, STR_FMT " >= " STR_FMT " && " STR_FMT " < " STR_FMT, STR_ARG(index),
                          STR_ARG(low), STR_ARG(index), STR_ARG(high));
    return tests_low(stmt) ? str_format(printer->arena, STR_FMT " >= " STR_FMT, STR_ARG(index), STR_ARG(low))
                           : str_format(printer->arena, STR_FMT " < " STR_FMT, STR_ARG(index), STR_ARG(high));
}

static void print_inside(Printer *printer, const Block *block)
{
    printer->indent++;
    print_block(printer, block);
    printer->indent--;
}

static void print_if(Printer *printer, const Stmt *stmt)
{
    Str test = print_test(printer, stmt); /* notes its constants, also where it is not printed */
    if (always_holds(stmt)) {
        printer->shared = !printer->alone;
        print_block(printer, &stmt->body);
        return;
    }
    print_line(printer, "if (" STR_FMT ") {", STR_ARG(test));
    print_inside(printer, &stmt->body);
    const Stmt *other = stmt->other.first;
    for (; other && other->kind == STMT_IF && !other->next && !always_holds(other); other = other->other.first) {
        test = print_test(printer, other);
        print_line(printer, "} else if (" STR_FMT ") {", STR_ARG(test));
        print_inside(printer, &other->body);
        stmt = other;
    }
    if (other) {
        print_line(printer, "} else {");
        print_inside(printer, &stmt->other);
    }
    print_line(printer, "}");
}

/* Every thread of the block gets what all of them hold, combined. */
static void print_meet(Printer *printer, const Stmt *stmt)
{
    Str name = print_local(printer, stmt->local, stmt->index, stmt->index2);
    print_line(printer, STR_FMT " = %s_%s<%u>(" STR_FMT ");", STR_ARG(name), print_meet_name(stmt->word),
               dtype_name(stmt->local->dtype), stmt->lanes, STR_ARG(name));
}

/* Turns squares of elements of the size. */
static const char *need_transpose(Printer *printer, DType dtype, uint32_t lanes)
{
    static const DType of_size[] = {[1] = DT_U8, [2] = DT_U16, [4] = DT_F32, [8] = DT_U64};
    DType moved = of_size[dtype_bytes(dtype)];
    return prelude_need(printer->needs, printer->arena, HELPER_TRANSPOSE, moved, moved == DT_F32 ? lanes : 1);
}

/* A square of lanes x lanes elements, rows to columns. */
static void print_transpose(Printer *printer, const Stmt *stmt)
{
    uint32_t lanes = printer->target->dialect == DIALECT_VECTOR ? stmt->lanes : 1;
    Str to_name = printer->names->buffer[stmt->buffer], from_name = printer->names->buffer[stmt->value->buffer];
    Str to = print_index_of(printer, to_name, stmt->index);
    Str from = print_index_of(printer, from_name, stmt->value->index);
    Str to_stride = print_lane_stride(printer, to_name, stmt->stride);
    Str from_stride = print_lane_stride(printer, from_name, stmt->from_stride);
    if (lanes > 1) {
        DType dtype = stmt->value->dtype;
        bool words = dtype_bytes(dtype) == 4 && dtype != DT_F32;
        print_line(printer, "%s(%s" STR_FMT " + " STR_FMT ", " STR_FMT ", %s" STR_FMT " + " STR_FMT ", " STR_FMT ");",
                   need_transpose(printer, dtype, lanes), words ? "(const float *)" : "", STR_ARG(from_name),
                   STR_ARG(from), STR_ARG(from_stride), words ? "(float *)" : "", STR_ARG(to_name), STR_ARG(to),
                   STR_ARG(to_stride));
        return;
    }
    Var row = {.name = "i"}, column = {.name = "j"};
    Str i = print_push(printer, &row), j = print_push(printer, &column);
    for (int loop = 0; loop < 2; loop++) {
        Str name = loop ? j : i;
        print_line(printer, "%sfor (int " STR_FMT " = 0; " STR_FMT " < %u; " STR_FMT "++)", loop ? "    " : "",
                   STR_ARG(name), STR_ARG(name), stmt->lanes, STR_ARG(name));
    }
    print_line(printer,
               "        " STR_FMT "[" STR_FMT " + " STR_FMT " * " STR_FMT " + " STR_FMT "] = " STR_FMT "[" STR_FMT
               " + " STR_FMT " * " STR_FMT " + " STR_FMT "];",
               STR_ARG(to_name), STR_ARG(to), STR_ARG(j), STR_ARG(to_stride), STR_ARG(i), STR_ARG(from_name),
               STR_ARG(from), STR_ARG(i), STR_ARG(from_stride), STR_ARG(j));
    printer->depth -= 2;
}

static void print_prefetch(Printer *printer, const Stmt *stmt)
{
    Str name = printer->names->buffer[stmt->buffer], index;
    if (printer->target->dialect != DIALECT_VECTOR)
        return;
    Index at = stmt->index;
    bool halves = printer->kernel->buffer[stmt->buffer].nibbles && !print_nibble_byte(printer->arena, at, &at);
    index = print_index_of(printer, name, at);
    if (halves)
        index = str_format(printer->arena, "(" STR_FMT ") / 2", STR_ARG(index));
    print_line(printer, "__builtin_prefetch(" STR_FMT " + " STR_FMT ", 0, %u);", STR_ARG(name), STR_ARG(index),
               4 - stmt->level);
}

static void print_stmt(Printer *printer, const Stmt *stmt)
{
    switch (stmt->kind) {
    case STMT_FOR:
        print_for(printer, stmt);
        break;
    case STMT_LANES:
        print_lanes(printer, stmt);
        break;
    case STMT_LOCAL:
        print_declaration(printer, stmt);
        break;
    case STMT_ASSIGN:
        print_assign(printer, stmt);
        break;
    case STMT_STORE:
        print_store(printer, stmt);
        break;
    case STMT_REDUCE:
        print_reduce(printer, stmt);
        break;
    case STMT_TRANSPOSE:
        print_transpose(printer, stmt);
        break;
    case STMT_TILES:
        print_tiles(printer, stmt);
        break;
    case STMT_PRODUCT:
        print_product(printer, stmt);
        break;
    case STMT_MEET:
        print_meet(printer, stmt);
        break;
    case STMT_BARRIER:
        print_line(printer, "__syncthreads();");
        break;
    case STMT_NOTE:
        print_line(printer, "/* %s */", stmt->note);
        break;
    case STMT_IF:
        print_if(printer, stmt);
        break;
    case STMT_PREFETCH:
        print_prefetch(printer, stmt);
        break;
    }
}

/* Statements on one row of registers share a line: `s = x[at + 2]; acc2_0 += s * w0_0; acc2_1 += s * w0_1;`. */
static bool shares_line(const Stmt *before, const Stmt *stmt)
{
    if (!before || before->kind != STMT_ASSIGN || stmt->kind != STMT_ASSIGN || !stmt->local->extent[0])
        return false;
    return !before->local->extent[0] || (before->local == stmt->local && index_eq(before->index, stmt->index));
}

/* Takes back the line break before `start`, when the two lines fit into one. */
static bool join_lines(Printer *printer, size_t before, size_t start)
{
    Text *out = printer->out;
    size_t blanks = (size_t)printer->indent * 4, rest = out->len - start - blanks;
    if (start - before + rest > SOURCE_WIDTH)
        return false;
    out->ptr[start - 1] = ' ';
    memmove(out->ptr + start, out->ptr + start + blanks, rest + 1);
    out->len -= blanks;
    return true;
}

/* Then lengths of lines do not count. */
static bool notes_constants(const Printer *printer)
{
    return printer->constants && !printer->constants->written;
}

void print_block(Printer *printer, const Block *block)
{
    const Stmt *previous = NULL;
    size_t before = 0;
    bool shared = printer->shared;
    uint32_t names = printer->scope_count;
    printer->shared = false;
    for (const Stmt *stmt = block->first; stmt; previous = stmt, stmt = stmt->next) {
        size_t start = printer->out->len;
        printer->alone = !shared && !previous && !stmt->next;
        print_stmt(printer, stmt);
        bool joins = shares_line(previous, stmt) && !notes_constants(printer);
        if (!joins || !join_lines(printer, before, start))
            before = start;
    }
    if (!shared)
        print_leave_scope(printer, names);
}
