/* Names that emitted sources cannot give to what a model calls so. */
#include "c/source.h"

#include <string.h>

/* Each between two blanks. */
static const char words[] =
    " auto break case char const continue default do double else enum extern float for goto if inline int long"
    " register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while"
    " alignas alignof and and_eq asm bitand bitor bool catch char8_t char16_t char32_t class co_await co_return"
    " co_yield compl concept const_cast consteval constexpr constinit decltype delete dynamic_cast explicit export"
    " false friend mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public"
    " reinterpret_cast requires static_assert static_cast template this thread_local throw true try typeid typename"
    " typeof using virtual wchar_t xor xor_eq NULL NAN INFINITY memcpy memset MATH_ERRNO MATH_ERREXCEPT OVERFLOW "
    "UNDERFLOW DOMAIN"
    " SING PLOSS TLOSS linux unix i386 EOF a w arena weights stream run ";
/* Macros of the headers, of sources and of the compiler. */
static const char *const prefixes[] = {"__",    "INT", "UINT", "PTRDIFF_", "SIZE_", "SIG_", "WCHAR_",
                                       "WINT_", "FP_", "M_",   "HUGE",     "NNC_",  "cuda", "nnc_"};
static const char *const suffixes[] = {"_ARENA_BYTES", "_WEIGHTS_BYTES", "_H", "_t"}; /* of the model's header; types */
static const char functions[] =
    " acos asin atan ceil cos cosh erf exp expm1 fabs floor fmax fmin fmod isnan log log1p memcpy memset nearbyint"
    " pow rint round sin sinh sqrt tan tanh trunc ";

static bool is_word_of(const char *list, Str name)
{
    for (const char *at = list; (at = strchr(at, ' ')) && at[1]; at++)
        if (strncmp(at + 1, name.ptr, name.len) == 0 && at[1 + name.len] == ' ')
            return true;
    return false;
}

bool source_name_is_taken(Str name)
{
    for (uint32_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (name.len >= strlen(prefixes[i]) && memcmp(name.ptr, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    for (uint32_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (name.len >= strlen(suffixes[i]) &&
            memcmp(name.ptr + name.len - strlen(suffixes[i]), suffixes[i], strlen(suffixes[i])) == 0)
            return true;
    return is_word_of(words, name);
}

bool source_name_is_function(Str name)
{
    bool single = name.len > 1 && name.ptr[name.len - 1] == 'f'; /* expf */
    return is_word_of(functions, name) || (single && is_word_of(functions, (Str){name.ptr, name.len - 1}));
}
