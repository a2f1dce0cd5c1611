/* Statements that are alike but for the names of tensors and labels: the types of their results are the same. */
#ifndef NNC_FRONTENDS_NNC_BUILD_ALIKE_H
#define NNC_FRONTENDS_NNC_BUILD_ALIKE_H

#include "frontends/nnc/build.h"
#include "frontends/nnc/compose.h"

#define COMPOSE_MOST_RESULTS 16

typedef struct ComposeStatement { /* taken apart */
    Str name[COMPOSE_MOST_RESULTS];
    uint32_t count;
    Text key; /* to be freed, whatever came of it */
} ComposeStatement;

typedef struct ComposeAlike { /* what was built for one of them */
    const Type *const *type;  /* of each result */
    uint32_t count;
    ComposedCall call;
} ComposeAlike;

typedef struct ComposeTable {
    Map index; /* of keys */
    const ComposeAlike **alike;
    uint32_t count, capacity;
} ComposeTable;

/* False where it is no assignment in one line, without bodies. */
bool build_alike_read(const Builder *b, Str statement, ComposeStatement *read);
const ComposeAlike *build_alike_find(const ComposeTable *table,
                                     const ComposeStatement *read); /* NULL: none was so far */
/* What was built for it, if it holds for others */
void build_alike_keep(ComposeTable *table, Builder *b, const ComposeStatement *read, ComposedCall call);
/* Binds its names as those of the other were. */
void build_alike_repeat(Builder *b, const ComposeStatement *read, const ComposeAlike *alike);

#endif
