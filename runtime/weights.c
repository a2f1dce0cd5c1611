/* Weights files: mapped and verified. */
#define _POSIX_C_SOURCE 200809L
#include "nnc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static nnc_status map_file(nnc_weights *weights, const char *path)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NNC_E_OPEN;
    void *memory = MAP_FAILED;
    bool known = fstat(fd, &status) == 0;
    if (known && S_ISREG(status.st_mode) && status.st_size == 0) { /* which mmap refuses */
        close(fd);
        return NNC_E_SIZE;
    }
    if (known && status.st_size > 0)
        memory = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    int error = errno;
    close(fd);
    if (memory == MAP_FAILED) {
        errno = error;
        return NNC_E_OPEN;
    }
    weights->data = memory;
    weights->bytes = (size_t)status.st_size;
    return NNC_OK;
}

nnc_status nnc_weights_open(nnc_weights *weights, const nnc_model *model, const char *path)
{
    weights->data = NULL;
    weights->bytes = 0;
    if (model->abi != NNC_MODEL_ABI)
        return NNC_E_ABI;
    if (model->weights_bytes == 0)
        return NNC_OK;
    if (!path) {
        errno = ENOENT;
        return NNC_E_OPEN;
    }
    nnc_status status = map_file(weights, path);
    if (status == NNC_OK && weights->bytes != model->weights_bytes)
        status = NNC_E_SIZE;
    if (status == NNC_OK && XXH3_64bits(weights->data, weights->bytes) != model->weights_checksum)
        status = NNC_E_CHECKSUM;
    if (status != NNC_OK)
        nnc_weights_close(weights);
    return status;
}

void nnc_weights_close(nnc_weights *weights)
{
    int error = errno;
    if (weights->data)
        munmap((void *)(uintptr_t)weights->data, weights->bytes);
    weights->data = NULL;
    weights->bytes = 0;
    errno = error;
}
