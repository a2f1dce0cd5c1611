/* Replays a corpus folder through a fuzz target, without libFuzzer: one TAP result per file. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static int is_file(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* The bytes lie in a block of their exact size, so that Valgrind sees a read past the end. */
static int replay(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END))
        return 0;
    size_t size = (size_t)ftell(file);
    uint8_t *bytes = malloc(size + !size);
    rewind(file);
    int good = bytes && fread(bytes, 1, size, file) == size;
    fclose(file);
    if (good)
        LLVMFuzzerTestOneInput(bytes, size);
    free(bytes);
    return good;
}

int main(int count, char **word)
{
    struct dirent **entry;
    int files = count == 2 ? scandir(word[1], &entry, is_file, alphasort) : -1;
    if (files < 0)
        return 1;
    printf("1..%d\n", files);
    for (int i = 0; i < files; i++) {
        printf("%sok %d - %s\n", replay(word[1], entry[i]->d_name) ? "" : "not ", i + 1, entry[i]->d_name);
        fflush(stdout);
        free(entry[i]);
    }
    free(entry);
    return 0;
}
