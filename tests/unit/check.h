/* For tests that go on until the first failure: its place and what was wrong, and the program ends. */
#ifndef NNC_TESTS_CHECK_H
#define NNC_TESTS_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition, ...)                                                                                          \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            printf("%s:%d: ", __FILE__, __LINE__);                                                                     \
            printf(__VA_ARGS__);                                                                                       \
            printf("\n");                                                                                              \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

#endif
