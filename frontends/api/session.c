/* Sessions: memory, diagnostics, and the edge behind which nothing exits. */
#include "api/session.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/fatal.h"

const char *nnc_compiler_version(void)
{
    return NNC_VERSION;
}

nnc_session *nnc_session_new(void)
{
    nnc_session *session = calloc(1, sizeof *session);
    if (session)
        session->diag.arena = &session->arena;
    return session;
}

void nnc_session_free(nnc_session *session)
{
    if (!session)
        return;
    for (nnc_module *module = session->module; module; module = module->next)
        file_unmap(&module->weights.map);
    for (uint32_t i = 0; i < session->map_count; i++)
        file_unmap(&session->map[i]);
    diag_free(&session->diag);
    arena_free(&session->arena);
    free(session);
}

void nnc_session_on_memory(nnc_session *session, void (*hook)(void *context, size_t bytes), void *context)
{
    session->hook = hook;
    session->hook_context = context;
}

const char *nnc_session_text(const nnc_session *session)
{
    return session->lost ? session->last_words : session->diag.text.ptr ? session->diag.text.ptr : "";
}

const nnc_diagnostic *nnc_session_diagnostic(const nnc_session *session, uint32_t index)
{
    return !session->lost && index < session->diag.entry_count ? &session->diagnostic[index] : NULL;
}

/* Entries as others read them: their texts are followed by a zero. */
static void list_diagnostics(nnc_session *session)
{
    const Diag *diag = &session->diag;
    session->diagnostic = ARENA_ARRAY(&session->arena, nnc_diagnostic, diag->entry_count);
    for (uint32_t i = 0; i < diag->entry_count; i++) {
        const DiagEntry *entry = &diag->entry[i];
        session->diagnostic[i] =
            (nnc_diagnostic){entry->error, entry->path.ptr, entry->line, entry->column, entry->message.ptr};
    }
}

static nnc_result lose(nnc_session *session, size_t bytes)
{
    session->lost = true;
    snprintf(session->last_words, sizeof session->last_words, "error: out of memory (%zu bytes asked for)\n", bytes);
    if (session->hook)
        session->hook(session->hook_context, bytes);
    return NNC_RESULT_MEMORY;
}

nnc_result session_call(nnc_session *session, SessionWork *work, void *argument)
{
    FatalTrap trap;

    if (session->lost)
        return NNC_RESULT_MEMORY;
    if (setjmp(trap.jump))
        return lose(session, trap.bytes);
    fatal_set(&trap);
    diag_clear(&session->diag);
    nnc_result result = work(session, argument);
    list_diagnostics(session);
    fatal_release(&trap);
    return result;
}

nnc_result session_misuse(nnc_session *session, const char *format, ...)
{
    va_list args;
    Text text = {0};
    va_start(args, format);
    text_vprintf(&text, format, args);
    va_end(args);
    diag_error(&session->diag, (Place){0}, "%s", text.ptr);
    text_free(&text);
    return NNC_RESULT_USE;
}

const char *session_keep(nnc_session *session, Text *text)
{
    const char *kept = str_copy(&session->arena, text_view(text)).ptr;
    text_free(text);
    return kept;
}
