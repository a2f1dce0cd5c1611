#include "ir/attr.h"

#include <assert.h>
#include <string.h>

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

static bool same_attr(AttrKind kind, const Attr *a, const Attr *b)
{
    if (a->i != b->i || (kind == ATTR_FLOAT && memcmp(&a->f, &b->f, sizeof a->f) != 0))
        return false;
    if (attr_is_list(kind))
        return a->i == 0 || memcmp(a->ints, b->ints, (size_t)a->i * sizeof *a->ints) == 0;
    return kind != ATTR_STRING || str_eq(a->s, b->s);
}

bool node_alike(const Node *a, const Node *b)
{
    const AttrSpec *spec = op_info(a->op)->attr;
    bool same = a->op == b->op;
    for (uint32_t i = 0; same && spec[i].name; i++)
        same = same_attr(spec[i].kind, &a->attr[i], &b->attr[i]);
    return same;
}

void node_attr_key(const Node *node, Text *key)
{
    const AttrSpec *spec = op_info(node->op)->attr;
    for (uint32_t i = 0; spec[i].name; i++) {
        const Attr *attr = &node->attr[i];
        text_put(key, (const void *)&attr->i, sizeof attr->i);
        if (spec[i].kind == ATTR_FLOAT)
            text_put(key, (const void *)&attr->f, sizeof attr->f);
        else if (attr_is_list(spec[i].kind))
            text_put(key, (const void *)attr->ints, (size_t)attr->i * sizeof *attr->ints);
        else if (spec[i].kind == ATTR_STRING) {
            text_put(key, (const void *)&attr->s.len, sizeof attr->s.len);
            text_put(key, attr->s.ptr, attr->s.len);
        }
    }
}
