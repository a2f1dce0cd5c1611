/* NAME_pack: what entries that update no params read of them, in the order in which they read it. */
#include <string.h>

#include "base/number.h"
#include "c/unit.h"

static bool may_exceed(const Packing *p, uint32_t b)
{
    int64_t largest = 0;
    bool counts = false;
    for (uint32_t d = 0; d < p->rank; d++) {
        largest += most(0, p->bound[b].factor[d]) * (p->extent[d] - 1);
        counts |= p->bound[b].factor[d] != 0;
    }
    return counts && largest >= p->bound[b].most;
}

static int64_t bound_factor(const Packing *p, uint32_t b, uint32_t d)
{
    return may_exceed(p, b) ? p->bound[b].factor[d] : 0;
}

/* Bounds that all elements keep are left out; of digits that go on where the next ones begin, one is made. */
static Packing merged(const Packing *from)
{
    Packing p = {.start = from->start};
    for (uint32_t b = 0; b < 2; b++)
        p.bound[b].most = from->bound[b].most;
    for (uint32_t d = 0; d < from->rank; d++) {
        uint32_t last = p.rank - 1;
        if (from->extent[d] == 1)
            continue;
        bool goes_on = p.rank && p.stride[last] == from->extent[d] * from->stride[d];
        for (uint32_t b = 0; b < 2 && goes_on; b++)
            goes_on = p.bound[b].factor[last] == from->extent[d] * bound_factor(from, b, d);
        uint32_t at = goes_on ? last : p.rank++;
        p.extent[at] = goes_on ? p.extent[at] * from->extent[d] : from->extent[d];
        p.stride[at] = from->stride[d];
        for (uint32_t b = 0; b < 2; b++)
            p.bound[b].factor[at] = bound_factor(from, b, d);
    }
    return p;
}

static bool is_run(const Packing *p)
{
    return p->rank == 0 || (p->rank == 1 && p->stride[0] == 1 && !may_exceed(p, 0) && !may_exceed(p, 1));
}

/* `i0 * 512 + i1 - i2`, or `0`. */
static void print_sum(Text *out, int64_t start, const int64_t *factor, uint32_t rank)
{
    const char *plus = "";
    for (uint32_t d = 0; d < rank; d++) {
        const char *sign = factor[d] > 0 ? plus : *plus ? " - " : "-";
        long long size = factor[d] < 0 ? -factor[d] : factor[d];
        if (!size)
            continue;
        text_printf(out, size == 1 ? "%si%u" : "%si%u * %lld", sign, d, size);
        plus = " + ";
    }
    if (start || !*plus)
        text_printf(out, "%s%lld", plus, (long long)start);
}

static void print_element(Text *out, const Packing *p)
{
    bool guarded = false;
    for (uint32_t b = 0; b < 2; b++) {
        if (!may_exceed(p, b))
            continue;
        text_printf(out, guarded ? " && " : "");
        print_sum(out, 0, p->bound[b].factor, p->rank);
        text_printf(out, " < %lld", (long long)p->bound[b].most);
        guarded = true;
    }
    text_printf(out, guarded ? " ? x[" : "x[");
    print_sum(out, p->start, p->stride, p->rank);
    text_printf(out, guarded ? "] : 0;\n" : "];\n");
}

static void print_loops(Text *out, const Packing *p, const char *type, long long from, long long to)
{
    text_printf(out,
                "    {\n"
                "        const %s *const x = (const %s *)(const void *)(p + %lld);\n"
                "        %s *y = (%s *)(void *)(k + %lld);\n",
                type, type, from, type, type, to);
    for (uint32_t d = 0; d < p->rank; d++) {
        text_fill(out, ' ', 8 + 4 * d);
        text_printf(out, "for (ptrdiff_t i%u = 0; i%u < %lld; i%u++)\n", d, d, (long long)p->extent[d], d);
    }
    text_fill(out, ' ', 8 + 4 * p->rank);
    text_printf(out, "*y++ = ");
    print_element(out, p);
    text_printf(out, "    }\n");
}

static void print_array(Text *out, const Unit *unit, const Weights *packed)
{
    const KeptSlot *slot = &unit->program->kept.slot[packed->slot];
    DType dtype = value_type(packed->graph, packed->value)->dtype;
    Packing p = merged(&packed->packing);
    source_start_comment(out, slot, unit->arena);
    if (is_run(&p))
        text_printf(out, "    memcpy(k + %lld, p + %lld, %lld);\n", (long long)packed->offset,
                    (long long)(slot->offset[0] + p.start * dtype_bytes(dtype)), (long long)packed->bytes);
    else
        print_loops(out, &p, prelude_c_type(dtype), (long long)slot->offset[0], (long long)packed->offset);
}

void unit_print_pack(Text *out, const Unit *unit)
{
    const Program *program = unit->program;
    if (!program->packed_count)
        return;
    text_printf(out,
                STR_FMT
                ")\n{\n"
                "    const unsigned char *const p = (const unsigned char *)params;\n"
                "    unsigned char *const k = (unsigned char *)packed;\n\n",
                STR_ARG(source_start_signature(program, BLOCK_PACKED, unit->arena)));
    text_printf(out, "    if (!p || (uintptr_t)p %% %d != 0)\n        return %d;\n", ARENA_ALIGNMENT,
                source_block_status(BLOCK_PARAMS));
    text_printf(out, "    if (!k || (uintptr_t)k %% %d != 0)\n        return %d;\n", ARENA_ALIGNMENT,
                source_block_status(BLOCK_PACKED));
    for (uint32_t i = 0; i < program->packed_count; i++)
        if (program->packed[i].bytes)
            print_array(out, unit, &program->packed[i]);
    text_printf(out, "    return 0;\n}\n\n");
}
