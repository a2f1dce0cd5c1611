/* Problems as CSV: what is read, what is refused and where, and that nothing crashes the reader. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/problem_csv.h"
#include "check.h"
#include "plan_random.h"

static bool read_text(Arena *arena, Diag *diag, Str text, PlanNamedProblem *named)
{
    diag->arena = arena;
    return plan_read_csv(arena, diag, diag_add_source(diag, STR("p.csv"), text), named);
}

static void both_forms_are_read(void)
{
    Arena arena = {0};
    Diag diag = {0};
    PlanNamedProblem a, b;
    CHECK(read_text(&arena, &diag, STR("id,lower,upper,size\na,0,3,10\nb,-2,5,7\n"), &a), "half-open");
    CHECK(read_text(&arena, &diag,
                    STR("# a comment\r\nsize, alignment ,note,end,\"id\",start\r\n\r\n10,8,x,2,\"a\",0\r\n"
                        "7,1,\"y, \"\"z\"\"\",4,\"b,c\",-2"),
                    &b),
          "inclusive: %s", diag.text.ptr);
    CHECK(a.problem.count == 2 && b.problem.count == 2, "counts");
    for (int i = 0; i < 2; i++) {
        const PlanBuffer *x = &a.problem.buffer[i], *y = &b.problem.buffer[i];
        CHECK(x->first == y->first && x->last == y->last && x->size == y->size, "row %d differs", i);
    }
    CHECK(read_text(&arena, &diag, STR("id,start,lower,upper,size\na,9,0,3,10\n"), &b) && b.problem.buffer[0].last == 3,
          "a start without an end is any other column");
    CHECK(read_text(&arena, &diag, STR("id,upper,end,start,size\na,9,0,0,10\n"), &b) && b.problem.buffer[0].last == 1,
          "and so is an upper without a lower");
    CHECK(read_text(&arena, &diag, STR("size,alignment,end,id,start\n10,8,2,a,0\n7,1,4,\"b,c\",-2"), &b),
          "inclusive again");
    CHECK(b.problem.buffer[0].alignment == 8 && str_is(b.id[1], "b,c"), "alignment and quotes");
    diag_free(&diag);
    arena_free(&arena);
}

static void errors_have_places(void)
{
    static const char *const bad[][2] = {
        {"", "p.csv:1:1: error: the file is empty"},
        {"id,size\na,1\n", "p.csv:1:1: error: expected the columns lower and upper"},
        {"id,lower,upper,start,end,size\n", "p.csv:1:1: error: expected the columns lower"},
        {"lower,upper,size\n", "p.csv:1:1: error: there is no column \"id\""},
        {"id,lower,upper,size,size\n", "p.csv:1:21: error: column \"size\" appears twice"},
        {"id,lower,upper,size\na,0,1\n", "p.csv:2:1: error: 3 fields, but the header has 4"},
        {"id,lower,upper,size\na,0,1,2\nb,x,1,2\n", "p.csv:3:3: error: lower: expected a whole number"},
        {"id,lower,upper,size\na,0,1,-5\n", "p.csv:2:7: error: size: out of range"},
        {"id,lower,upper,size\na,0,1,99999999999999999999999\n", "p.csv:2:7: error: size: out of range"},
        {"id,lower,upper,size\na,0,1,1e9\n", "p.csv:2:7: error: size: expected a whole number"},
        {"id,lower,upper,size\na,3,3,1\n", "p.csv:2:5: error: the live range is empty"},
        {"id,lower,upper,size\na,0,1,\n", "p.csv:2:7: error: size: expected a number"},
        {"id,lower,upper,size\na,0,1,2\na,0,1,2\n", "p.csv:3:1: error: id: \"a\" appears twice"},
        {"id,lower,upper,size\n,0,1,2\n", "p.csv:2:1: error: id: expected a name"},
        {"id,lower,upper,size\n\"a,0,1,2\n", "p.csv:2:1: error: this quote is not closed"},
        {"id,lower,upper,size\n\"a\"b,0,1,2\n", "p.csv:2:4: error: text behind a closing quote"},
        {"id,lower,upper,size,alignment\na,0,1,2,0\n", "p.csv:2:9: error: alignment: out of range"},
        {"id,lower,upper,size\nb,0,1,1\na,0,1,1152921504606846976\n", "p.csv:3:7: error: size: the sizes up to here"},
        {"id,lower,upper,size\nb\xff,0,1,1\n", "p.csv:2:1: error: id: expected UTF-8"},
        {"id,lower,upper,size\nb\x1b[31m,0,1,1\n", "p.csv:2:1: error: id: expected UTF-8 without control"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        Arena arena = {0};
        Diag diag = {0};
        PlanNamedProblem named;
        bool read = read_text(&arena, &diag, str_from(bad[i][0]), &named);
        CHECK(!read && diag.text.ptr && strstr(diag.text.ptr, bad[i][1]), "case %zu: %s", i,
              read ? "was read" : diag.text.ptr);
        diag_free(&diag);
        arena_free(&arena);
    }
}

/* Damaged text is refused or read, but what is read is a valid problem. */
static void damage_does_not_crash(void)
{
    static const char good[] = "id,lower,upper,size,alignment\n\"a\",0,30,10,4\nb,2,5,7,1\nc,-3,40,1024,64\n";
    static const char spice[] = "\",\n\r #-0199\0\xff\xef\xbb\xbf";
    Random random = {7};
    uint32_t read = 0;
    for (int trial = 0; trial < 20000; trial++) {
        char text[sizeof good];
        memcpy(text, good, sizeof good);
        uint32_t length = (uint32_t)(sizeof good - 1 - (size_t)(trial % 4 ? 0 : random_below(&random, sizeof good)));
        for (int64_t n = random_below(&random, 6); n >= 0; n--)
            text[random_below(&random, sizeof good - 1)] = spice[random_below(&random, sizeof spice - 1)];
        Arena arena = {0};
        Diag diag = {0};
        PlanNamedProblem named;
        Str message;
        if (read_text(&arena, &diag, (Str){text, length}, &named)) {
            read++;
            CHECK(plan_valid(&arena, &named.problem, &message), "an invalid problem was read");
        } else {
            CHECK(diag.error_count > 0, "refused without a word");
        }
        diag_free(&diag);
        arena_free(&arena);
    }
    CHECK(read > 100, "too few survive: %u", read);
}

static void solutions_are_json(void)
{
    Arena arena = {0};
    Diag diag = {0};
    PlanNamedProblem named;
    PlanResult r;
    Text out = {0};
    CHECK(read_text(&arena, &diag, STR("id,lower,upper,size\n\"a\"\"\\\",0,3,10\nb\xc3\xa9,2,5,7\n"), &named), "read");
    CHECK(plan_place(&arena, &named.problem, "bestfit", 1, &r), "placed");
    plan_write_json(&out, &named, &r);
    CHECK(strcmp(out.ptr,
                 "{\n  \"peak\": 17,\n  \"lower_bound\": 17,\n  \"proven\": true,\n  \"nodes\": 0,\n"
                 "  \"allocator\": \"bestfit\",\n  \"offsets\": {\n    \"a\\\"\\\\\": 0,\n"
                 "    \"b\xc3\xa9\": 10\n  }\n}\n") == 0,
          "%s", out.ptr);
    text_free(&out);
    diag_free(&diag);
    arena_free(&arena);
}

int main(void)
{
    both_forms_are_read();
    errors_have_places();
    damage_does_not_crash();
    solutions_are_json();
    puts("plan_csv: ok");
    return 0;
}
