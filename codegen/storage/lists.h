/* Many short lists in two arrays. */
#ifndef NNC_STORAGE_LISTS_H
#define NNC_STORAGE_LISTS_H

#include <stdint.h>

typedef struct Lists { /* list i is item[first[i]] ... item[first[i + 1] - 1] */
    uint32_t *first, *item;
} Lists;

#endif
