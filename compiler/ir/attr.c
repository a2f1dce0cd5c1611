#include "ir/attr.h"

#include <assert.h>

const Attr *attr_of(const Node *node, const char *name)
{
    uint32_t index = attr_index(node->op, str_from(name));
    assert(index != NONE);
    return &node->attr[index];
}

int64_t attr_int(const Node *node, const char *name)
{
    return attr_of(node, name)->i;
}

double attr_float(const Node *node, const char *name)
{
    return attr_of(node, name)->f;
}

bool attr_bool(const Node *node, const char *name)
{
    return attr_of(node, name)->i != 0;
}

void attr_ints(const Node *node, const char *name, uint32_t count, int64_t *out)
{
    const Attr *attr = attr_of(node, name);
    for (uint32_t i = 0; i < count; i++)
        out[i] = attr->ints[attr->i == 1 ? 0 : i];
}
