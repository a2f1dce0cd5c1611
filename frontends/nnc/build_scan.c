#include "frontends/nnc/build.h"
#include "frontends/nnc/build_loop.h"
Thing build_scan(Builder *b, const AstExpr *expr)
{
    build_complain(b, expr->place, "'scan' is not supported yet");
    return build_thing_bad();
}
