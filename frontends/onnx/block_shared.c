/* What blocks share stands before them: an exporter computes the mask in the first layer that reads it, which then is
 * unlike the others.
 *
 * A statement moves behind the last that it reads of when statements read it that are alike and far apart, as those of
 * two layers are, or when nothing else than what moves reads it.  What is made of weights alone, for one statement,
 * moves before that: quantised weights are widened where they are read.  Declarations go with those that read them. */
#include "base/number.h"
#include "onnx/repeat.h"

#define FAR 12 /* statements */

typedef struct Move {
    Repeat *r;
    bool *moves;     /* statements */
    bool *late;      /* those that move before the one that reads them */
    uint32_t *place; /* of each: it goes behind the statement of this number, as all of that place in their order */
} Move;

static const OnnxStatement *statement_at(const Move *m, uint32_t i)
{
    return &m->r->script->statement[i];
}

static bool is_declaration(const OnnxStatement *s)
{
    return s->kind == STATEMENT_PARAM || s->kind == STATEMENT_CONST;
}

/* Is the first statement that reads it like one far behind? */
static bool is_read_far_apart(const Move *m, const RepeatValue *value)
{
    const uint32_t *use = m->r->use + value->first_use;
    for (uint32_t i = 1; i < value->uses; i++)
        if (use[i] - use[0] >= FAR && statement_at(m, use[i])->class == statement_at(m, use[0])->class)
            return true;
    return false;
}

static bool moves_with_readers(const Move *m, const RepeatValue *value)
{
    for (uint32_t i = 0; i < value->uses; i++)
        if (!m->moves[m->r->use[value->first_use + i]])
            return false;
    return !value->result;
}

/* From the last statement on, so that those that read it are known. */
static void find_moves(Move *m)
{
    for (uint32_t i = m->r->script->count; i-- > 0;) {
        const OnnxStatement *s = statement_at(m, i);
        uint32_t at = 0;
        bool far = false, with = s->kind == STATEMENT_PLAIN;
        for (uint32_t k = 0; k < s->results; k++) {
            const RepeatValue *value = &m->r->value[onnx_statement_next(s, &at, TOKEN_VALUE)->id];
            far |= is_read_far_apart(m, value);
            with &= moves_with_readers(m, value);
        }
        m->moves[i] = s->kind == STATEMENT_PLAIN && (far || with);
    }
}

/* Behind what it reads: places only become smaller, so that this stays in order. */
static void find_places(Move *m)
{
    for (uint32_t i = 0; i < m->r->script->count; i++) {
        const OnnxStatement *s = statement_at(m, i);
        uint32_t at = 0, number = 0, place = 0;
        for (const OnnxToken *t; m->moves[i] && (t = onnx_statement_next(s, &at, TOKEN_VALUE)); number++) {
            uint32_t from = m->r->value[t->id].statement;
            if (number >= s->results && from != NONE && !is_declaration(statement_at(m, from)))
                place = (uint32_t)most(place, statement_at(m, from)->updates ? i : m->place[from]);
        }
        m->place[i] = m->moves[i] ? place : i;
    }
}

static bool is_of_weights(const Move *m, const OnnxStatement *s)
{
    uint32_t at = 0, number = 0, operands = 0;
    for (const OnnxToken *t; (t = onnx_statement_next(s, &at, TOKEN_VALUE)); number++) {
        uint32_t from = number < s->results ? NONE : m->r->value[t->id].statement;
        if (number >= s->results && (from == NONE || !(is_declaration(statement_at(m, from)) || m->late[from])))
            return false;
        operands += number >= s->results;
    }
    return operands > 0;
}

static void find_late(Move *m)
{
    for (uint32_t i = 0; i < m->r->script->count; i++) {
        const OnnxStatement *s = statement_at(m, i);
        uint32_t at = 0;
        const RepeatValue *value = &m->r->value[onnx_statement_next(s, &at, TOKEN_VALUE)->id];
        m->late[i] =
            s->kind == STATEMENT_PLAIN && s->results == 1 && value->uses == 1 && !value->result && is_of_weights(m, s);
    }
}

/* From the last on: what is late, and what is declared for one statement, stands before its reader; other declarations
 * stand before all of theirs. */
static void place_before_readers(Move *m)
{
    for (uint32_t i = m->r->script->count; i-- > 0;) {
        const OnnxStatement *s = statement_at(m, i);
        uint32_t at = 0;
        const RepeatValue *value = &m->r->value[onnx_statement_next(s, &at, TOKEN_VALUE)->id];
        const uint32_t *use = m->r->use + value->first_use;
        if (m->late[i] || (is_declaration(s) && value->uses == 1 && !value->result))
            m->place[i] = m->place[use[0]];
        for (uint32_t k = 0; is_declaration(s) && k < value->uses; k++)
            m->place[i] = (uint32_t)least(m->place[i], m->place[use[k]]);
    }
}

static bool is_in_order(const Move *m)
{
    for (uint32_t i = 1; i < m->r->script->count; i++)
        if (m->place[i] < m->place[i - 1])
            return false;
    return true;
}

/* By their places, of one place in the order that they have */
static void put_in_order(const Move *m)
{
    OnnxScript *script = m->r->script;
    uint32_t *begin = ARENA_ARRAY(m->r->arena, uint32_t, script->count + 1);
    OnnxStatement *sorted = ARENA_ARRAY(m->r->arena, OnnxStatement, script->count + 1);
    for (uint32_t i = 0; i < script->count; i++)
        begin[m->place[i] + 1]++;
    for (uint32_t i = 1; i < script->count; i++)
        begin[i] += begin[i - 1];
    for (uint32_t i = 0; i < script->count; i++)
        sorted[begin[m->place[i]]++] = script->statement[i];
    script->statement = sorted;
}

bool onnx_block_move_shared(Repeat *r)
{
    uint32_t count = r->script->count;
    Move m = {r, ARENA_ARRAY(r->arena, bool, count + 1), ARENA_ARRAY(r->arena, bool, count + 1),
              ARENA_ARRAY(r->arena, uint32_t, count + 1)};
    find_moves(&m);
    find_places(&m);
    find_late(&m);
    place_before_readers(&m);
    bool moved = !is_in_order(&m);
    if (moved)
        put_in_order(&m);
    return moved;
}
