/* Places the problems of a folder (or the files given) and prints what each took.
 *
 *     plan_minimalloc [--allocator NAME] [--effort N] [--target BYTES] FOLDER|FILE.csv... */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "plan/exact.h"
#include "plan/items.h"
#include "plan/problem_csv.h"

typedef struct Options {
    const char *allocator, *preorder;
    int effort;
    int64_t target;
    uint64_t budget;
} Options;

static double seconds(void) /* of this process: others may share the core */
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int is_csv(const struct dirent *entry)
{
    return str_ends(str_from(entry->d_name), ".csv");
}

/* One search with one preorder for one height, to compare preorders. */
static bool try_target(Arena *arena, const PlanProblem *p, const Options *o, PlanResult *r)
{
    PlanItems items;
    plan_items(arena, p, 0, &items);
    *r = (PlanResult){.lower_bound = items.lower_bound, .allocator = "gave up"};
    int64_t *offset = ARENA_ARRAY(arena, int64_t, items.count);
    PlanVerdict v = PLAN_GAVE_UP;
    PlanExact *x = plan_exact_new(arena, &items);
    for (int i = 0; i < o->effort && v == PLAN_GAVE_UP; i++) {
        PlanQuest quest = {
            .target = o->target ? o->target : items.lower_bound, .preorder = o->preorder, .nodes = o->budget};
        v = plan_exact_fit(x, &quest, offset);
        r->nodes += quest.spent;
    }
    if (v == PLAN_GAVE_UP)
        return false;
    r->allocator = v == PLAN_FOUND ? "found" : "refuted";
    r->peak = v == PLAN_FOUND ? plan_items_peak(&items, offset) : 0;
    return true;
}

static double run(const char *path, const Options *o)
{
    Arena arena = {0};
    Diag diag = {.arena = &arena};
    Str text, message;
    PlanNamedProblem named;
    if (!file_read(&arena, &diag, str_from(path), &text) ||
        !plan_read_csv(&arena, &diag, diag_add_source(&diag, str_from(path), text), &named)) {
        fputs(diag.text.ptr, stderr);
        exit(1);
    }
    PlanResult r;
    double time = -seconds();
    bool good = o->preorder ? try_target(&arena, &named.problem, o, &r)
                            : plan_place(&arena, &named.problem, o->allocator, o->effort, &r);
    time += seconds();
    if (!o->preorder && (!good || !plan_check(&arena, &named.problem, &r, &message))) {
        fprintf(stderr, "%s: %.*s\n", path, STR_ARG(good ? message : r.message));
        exit(1);
    }
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    printf("%-16s %6u %12" PRId64 " %12" PRId64 " %-6s %10" PRIu64 " %8.3f s  %s\n", name, named.problem.count, r.peak,
           r.lower_bound, r.proven ? "proven" : "", r.nodes, time, r.allocator);
    fflush(stdout);
    arena_free(&arena);
    diag_free(&diag);
    return time;
}

static double run_path(const char *path, const Options *o)
{
    struct dirent **entry;
    int count = scandir(path, &entry, is_csv, alphasort);
    double time = 0;
    if (count < 0)
        return run(path, o);
    for (int i = 0; i < count; i++) {
        char file[4096];
        snprintf(file, sizeof file, "%s/%s", path, entry[i]->d_name);
        time += run(file, o);
        free(entry[i]);
    }
    free(entry);
    return time;
}

int main(int argc, char **argv)
{
    Options o = {.effort = 1, .budget = 100000};
    double total = 0;
    printf("%-16s %6s %12s %12s %-6s %10s\n", "problem", "count", "peak", "lower bound", "", "nodes");
    for (int a = 1; a < argc; a++) {
        if (strcmp(argv[a], "--allocator") == 0 && a + 1 < argc)
            o.allocator = argv[++a];
        else if (strcmp(argv[a], "--effort") == 0 && a + 1 < argc)
            o.effort = atoi(argv[++a]);
        else if (strcmp(argv[a], "--preorder") == 0 && a + 1 < argc)
            o.preorder = argv[++a];
        else if (strcmp(argv[a], "--target") == 0 && a + 1 < argc)
            o.target = atoll(argv[++a]);
        else if (strcmp(argv[a], "--budget") == 0 && a + 1 < argc)
            o.budget = (uint64_t)atoll(argv[++a]);
        else
            total += run_path(argv[a], &o);
    }
    printf("total %.3f s\n", total);
    return 0;
}
