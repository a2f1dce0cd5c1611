/* What the parts of a report and its printers count over its rows. */
#include "plan/report.h"
#include "plan/sort.h"

SortKey *plan_rows_by_start(Arena *arena, const PlanReport *r)
{
    SortKey *key = ARENA_ARRAY(arena, SortKey, r->count);
    for (uint32_t i = 0; i < r->count; i++)
        key[i] = (SortKey){(uint64_t)r->row[i].first ^ UINT64_C(1) << 63, i};
    sort_ascending(arena, key, r->count);
    return key;
}

uint32_t plan_stored(const PlanReport *r)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < r->count; i++)
        count += plan_row_is_stored(&r->row[i]) && r->row[i].kind != PLAN_GROWING;
    return count;
}

typedef struct Change {
    int64_t step, bytes;
} Change;

uint32_t plan_report_levels(Arena *arena, const PlanReport *r, uint32_t region, PlanLevel **levels)
{
    Arena scratch = {0};
    uint32_t most = 2 * r->count + 2 * r->share_count, n = 0, count = 0;
    Change *change = ARENA_ARRAY(&scratch, Change, most);
    SortKey *key = ARENA_ARRAY(&scratch, SortKey, most);
    for (uint32_t i = 0; i < r->count; i++) {
        const PlanRow *row = &r->row[i];
        if (!plan_row_is_stored(row) || (region != PLAN_NO_ROW && region != row->region))
            continue;
        change[n++] = (Change){row->first, row->bytes};
        change[n++] = (Change){row->last, -row->bytes};
    }
    for (uint32_t i = 0; i < r->share_count; i++) {
        const PlanShare *share = &r->share[i];
        if (region != PLAN_NO_ROW && region != share->region)
            continue;
        change[n++] = (Change){share->first, -share->bytes};
        change[n++] = (Change){share->last, share->bytes};
    }
    for (uint32_t i = 0; i < n; i++)
        key[i] = (SortKey){(uint64_t)change[i].step ^ UINT64_C(1) << 63, i};
    sort_ascending(&scratch, key, n);
    *levels = ARENA_ARRAY(arena, PlanLevel, n);
    int64_t live = 0;
    for (uint32_t k = 0; k < n; k++) {
        live += change[key[k].index].bytes;
        if (!count || (*levels)[count - 1].step != change[key[k].index].step)
            (*levels)[count++].step = change[key[k].index].step;
        (*levels)[count - 1].live = live;
    }
    arena_free(&scratch);
    return count;
}
