#include <string.h>
#include <stdlib.h>

#include <zip.h>

#include "formats/npy.h"

#include "base/fatal.h"

/* Deflate makes at most 1032 bytes of one (zlib's technical notes): a member that claims more is no honest one. */
#define DEFLATE_MOST 1032

static zip_t *open_archive(Diag *diag, Str path)
{
    char *name = strndup(path.ptr, path.len);
    int code = 0;
    zip_t *archive = name ? zip_open(name, ZIP_RDONLY, &code) : NULL;
    free(name);
    if (!archive && diag) {
        zip_error_t error;
        zip_error_init_with_code(&error, code);
        diag_file_error(diag, path, "cannot read the archive: %s", zip_error_strerror(&error));
        zip_error_fini(&error);
    }
    return archive;
}

/* The member's name without .npy. */
static Str member_name(zip_t *archive, zip_uint64_t index)
{
    const char *name = zip_get_name(archive, index, 0);
    Str s = str_from(name ? name : "");
    if (str_ends(s, ".npy"))
        s.len -= 4;
    return s;
}

static zip_int64_t find_member(zip_t *archive, Str name)
{
    zip_int64_t count = zip_get_num_entries(archive, 0);
    if (!name.len)
        return count == 1 ? 0 : -1;
    for (zip_int64_t i = 0; i < count; i++)
        if (str_eq(member_name(archive, (zip_uint64_t)i), name))
            return i;
    return -1;
}

static void complain_of_member(Diag *diag, Str path, zip_t *archive, Str name)
{
    Text list = {0};
    zip_int64_t count = zip_get_num_entries(archive, 0);
    for (zip_int64_t i = 0; i < count && i < 20; i++)
        text_printf(&list, "%s" STR_FMT, i ? ", " : "", STR_ARG(member_name(archive, (zip_uint64_t)i)));
    if (name.len)
        diag_file_error(diag, path, "has no member " STR_FMT "; it has: %s%s", STR_ARG(name),
                        list.ptr ? list.ptr : "none", count > 20 ? ", ..." : "");
    else
        diag_file_error(diag, path, "has %lld members, name one as FILE.npz:MEMBER; it has: %s%s", (long long)count,
                        list.ptr ? list.ptr : "none", count > 20 ? ", ..." : "");
    text_free(&list);
}

/* The member's bytes, from malloc; NULL after an error. */
static unsigned char *read_member(Diag *diag, Str path, zip_t *archive, zip_uint64_t index, size_t *size)
{
    zip_stat_t status;
    zip_stat_init(&status);
    if (zip_stat_index(archive, index, 0, &status) == 0 && status.valid & ZIP_STAT_COMP_METHOD &&
        status.comp_method != ZIP_CM_STORE && status.comp_method != ZIP_CM_DEFLATE) {
        diag_file_error(diag, path, "it is compressed by method %u of zip; NumPy's are stored or deflated",
                        status.comp_method);
        return NULL;
    }
    if (!(status.valid & ZIP_STAT_SIZE) || status.size / DEFLATE_MOST > status.comp_size + 1) {
        diag_file_error(diag, path, "the archive is damaged");
        return NULL;
    }
    zip_file_t *file = zip_fopen_index(archive, index, 0);
    unsigned char *bytes = malloc(status.size + 1);
    if (!bytes)
        fatal_memory(status.size);
    bool good = file && zip_fread(file, bytes, status.size) == (zip_int64_t)status.size;
    good = good && zip_fread(file, bytes + status.size, 1) == 0; /* the end: checks the CRC */
    if (file)
        zip_fclose(file);
    if (!good) {
        free(bytes);
        diag_file_error(diag, path, "the archive is damaged");
        return NULL;
    }
    *size = status.size;
    return bytes;
}

const Tensor *npz_read(Module *module, Str path, Str name)
{
    const Tensor *tensor = NULL;
    size_t size;
    zip_t *archive = open_archive(module->diag, path);
    if (!archive)
        return NULL;
    zip_int64_t index = find_member(archive, name);
    if (index < 0) {
        complain_of_member(module->diag, path, archive, name);
    } else {
        unsigned char *bytes = read_member(module->diag, path, archive, (zip_uint64_t)index, &size);
        if (bytes)
            tensor = npy_parse(module, path, bytes, size);
        free(bytes);
    }
    zip_discard(archive);
    return tensor;
}

bool npz_check(Diag *diag, Str path)
{
    zip_t *archive = open_archive(diag, path);
    if (archive)
        zip_discard(archive);
    return archive != NULL;
}

bool npz_has(Str path, Str name)
{
    zip_t *archive = open_archive(NULL, path);
    if (!archive)
        return false;
    bool there = find_member(archive, name) >= 0;
    zip_discard(archive);
    return there;
}

static bool add_member(zip_t *archive, const NamedTensor *member)
{
    size_t data = (size_t)type_bytes(member->tensor->type);
    Text file = {0}, name = {0};

    npy_header(&file, member->tensor->type);
    text_put(&file, member->tensor->data, data);
    text_printf(&name, STR_FMT ".npy", STR_ARG(member->name));
    zip_source_t *source = zip_source_buffer(archive, file.ptr, file.len, 1); /* frees file.ptr */
    bool good = source && zip_file_add(archive, name.ptr, source, ZIP_FL_ENC_UTF_8) >= 0;
    if (!good)
        zip_source_free(source);
    text_free(&name);
    return good;
}

bool npz_write(Diag *diag, Str path, const NamedTensor *member, uint32_t count)
{
    char *name = strndup(path.ptr, path.len);
    int code = 0;
    zip_t *archive = name ? zip_open(name, ZIP_CREATE | ZIP_TRUNCATE, &code) : NULL;
    free(name);
    bool good = archive;
    for (uint32_t i = 0; good && i < count; i++)
        good = add_member(archive, &member[i]);
    if (good && zip_close(archive) == 0) /* libzip writes aside and renames */
        return true;
    diag_file_error(diag, path, "cannot write: %s",
                    archive ? zip_strerror(archive) : "not an archive, or no such folder");
    if (archive)
        zip_discard(archive);
    return false;
}
