#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fatal.h"

static char *terminated(Str s)
{
    char *copy = malloc((size_t)s.len + 16);
    if (!copy)
        fatal_memory((size_t)s.len + 16);
    memcpy(copy, s.ptr, s.len);
    copy[s.len] = 0;
    return copy;
}

static bool open_regular(Diag *diag, Str path, int *fd, size_t *size)
{
    char *name = terminated(path);
    struct stat status;
    *fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe would wait for someone who writes */
    int error = errno;
    bool dangling = *fd < 0 && error == ENOENT && lstat(name, &status) == 0;
    free(name);
    if (dangling)
        return diag_file_error(diag, path, "a link to a file that does not exist");
    if (*fd < 0)
        return diag_file_error(diag, path.len ? path : STR("\"\""), "cannot open: %s", strerror(error));
    if (fstat(*fd, &status) || !S_ISREG(status.st_mode)) {
        close(*fd);
        return diag_file_error(diag, path, "not a regular file");
    }
    *size = (size_t)status.st_size;
    return true;
}

bool file_map(Diag *diag, Str path, FileMap *map)
{
    int fd;
    *map = (FileMap){0};
    if (!open_regular(diag, path, &fd, &map->size))
        return false;
    void *memory = map->size ? mmap(NULL, map->size, PROT_READ, MAP_PRIVATE, fd, 0) : "";
    close(fd);
    if (memory == MAP_FAILED)
        return diag_file_error(diag, path, "cannot map: %s", strerror(errno));
    map->bytes = memory;
    return true;
}

void file_unmap(FileMap *map)
{
    if (map->size)
        munmap((void *)(uintptr_t)map->bytes, map->size);
    *map = (FileMap){0};
}

bool file_read(Arena *arena, Diag *diag, Str path, Str *bytes)
{
    FileMap map;
    if (!file_map(diag, path, &map))
        return false;
    if (map.size > INT32_MAX) {
        file_unmap(&map);
        return diag_file_error(diag, path, "larger than 2 GiB");
    }
    *bytes = str_copy(arena, (Str){(const char *)map.bytes, (uint32_t)map.size});
    file_unmap(&map);
    return true;
}

bool file_read_input(Arena *arena, Diag *diag, Str *bytes)
{
    Str path = STR("<stdin>");
    size_t capacity = 1 << 16, size = 0, got;
    char *text = arena_alloc(arena, capacity);
    while ((got = fread(text + size, 1, capacity - size, stdin)) > 0) {
        size += got;
        if (size > INT32_MAX)
            return diag_file_error(diag, path, "larger than 2 GiB");
        if (size < capacity)
            continue;
        char *larger = arena_alloc(arena, capacity *= 2);
        memcpy(larger, text, size);
        text = larger;
    }
    if (ferror(stdin))
        return diag_file_error(diag, path, "cannot read: %s", strerror(errno));
    *bytes = (Str){text, (uint32_t)size};
    return true;
}

/* A device, a pipe or a folder, which a rename would replace: it is written to as it stands. */
static bool is_special(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && !S_ISREG(status.st_mode);
}

bool file_writer_open(FileWriter *writer, Diag *diag, Str path)
{
    *writer = (FileWriter){.path = terminated(path)};
    if (is_special(writer->path)) {
        writer->stream = fopen(writer->path, "wb");
    } else {
        writer->temporary = terminated(path);
        strcpy(writer->temporary + path.len, ".part");
        writer->stream = fopen(writer->temporary, "wb");
    }
    if (writer->stream)
        return true;
    int error = errno;
    file_writer_abandon(writer);
    return diag_file_error(diag, path, "cannot write: %s", strerror(error));
}

void file_writer_put(FileWriter *writer, const void *bytes, size_t size)
{
    if (size && fwrite(bytes, 1, size, writer->stream) != size)
        writer->failed = true;
}

bool file_writer_commit(FileWriter *writer, Diag *diag)
{
    bool good = fclose(writer->stream) == 0 && !writer->failed;
    writer->stream = NULL;
    if (good && (!writer->temporary || rename(writer->temporary, writer->path) == 0)) {
        free(writer->path);
        free(writer->temporary);
        return true;
    }
    diag_file_error(diag, str_from(writer->path), "cannot write: %s", strerror(errno));
    file_writer_abandon(writer);
    return false;
}

void file_writer_abandon(FileWriter *writer)
{
    if (writer->stream)
        fclose(writer->stream);
    if (writer->temporary)
        unlink(writer->temporary);
    free(writer->path);
    free(writer->temporary);
    *writer = (FileWriter){0};
}

bool file_write(Diag *diag, Str path, const void *bytes, size_t size)
{
    FileWriter writer;
    if (!file_writer_open(&writer, diag, path))
        return false;
    file_writer_put(&writer, bytes, size);
    return file_writer_commit(&writer, diag);
}

bool file_exists(Str path)
{
    struct stat status;
    char *name = terminated(path);
    bool there = lstat(name, &status) == 0;
    free(name);
    return there;
}

bool file_same(Str a, Str b)
{
    struct stat one, other;
    char *name[2] = {terminated(a), terminated(b)};
    bool same = stat(name[0], &one) == 0 && stat(name[1], &other) == 0 && one.st_dev == other.st_dev &&
                one.st_ino == other.st_ino;
    free(name[0]);
    free(name[1]);
    return same;
}

/* The folder of a path, and the name in there. */
static Str folder_of(Str path, Str *name)
{
    uint32_t begin = path.len;
    while (begin > 0 && path.ptr[begin - 1] != '/')
        begin--;
    *name = (Str){path.ptr + begin, path.len - begin};
    return begin ? (Str){path.ptr, begin} : STR(".");
}

bool file_clash(Str a, Str b)
{
    Str name_a, name_b, folder_a = folder_of(a, &name_a), folder_b = folder_of(b, &name_b);
    return str_eq(a, b) || file_same(a, b) || (str_eq(name_a, name_b) && file_same(folder_a, folder_b));
}

bool file_make_folder(Diag *diag, Str path)
{
    char *name = terminated(path);
    bool good = true;
    for (size_t i = 1; good && i <= path.len; i++) {
        if (i < path.len && name[i] != '/')
            continue;
        char rest = name[i];
        name[i] = 0;
        good = mkdir(name, 0777) == 0 || errno == EEXIST;
        name[i] = rest;
    }
    struct stat status;
    good = good && stat(name, &status) == 0 && S_ISDIR(status.st_mode);
    free(name);
    return good || diag_file_error(diag, path, "cannot make the folder: %s", strerror(errno ? errno : ENOTDIR));
}
