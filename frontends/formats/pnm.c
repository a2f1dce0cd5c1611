#include "formats/pnm.h"

#include <math.h>

#include "base/file.h"

#define LARGEST_SIDE 65536

typedef struct Reader {
    const unsigned char *at, *end;
} Reader;

/* A decimal number after blanks and comments; -1 at the end, on other text, and above 65536. */
static int64_t take_number(Reader *r)
{
    int64_t number = 0;

    while (r->at < r->end && (*r->at == '#' || *r->at == ' ' || (*r->at >= '\t' && *r->at <= '\r')))
        if (*r->at++ == '#')
            while (r->at < r->end && *r->at != '\n')
                r->at++;
    if (r->at == r->end || *r->at < '0' || *r->at > '9')
        return -1;
    for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++) {
        number = number * 10 + (*r->at - '0');
        if (number > LARGEST_SIDE)
            return -1;
    }
    return number;
}

/* The next sample, or -1 when the file ends. */
static int64_t take_sample(Reader *r, bool raw, int64_t maxval)
{
    if (!raw)
        return take_number(r);
    if (r->end - r->at < (maxval > 255 ? 2 : 1))
        return -1;
    int64_t sample = *r->at++;
    return maxval > 255 ? sample << 8 | *r->at++ : sample;
}

const Tensor *pnm_parse(Module *module, Str path, const unsigned char *bytes, size_t size)
{
    Reader r = {bytes + 2, bytes + size};
    char kind = size > 2 && bytes[0] == 'P' ? (char)bytes[1] : 0;

    if (kind != '2' && kind != '3' && kind != '5' && kind != '6') {
        diag_file_error(module->diag, path, "not a .pgm or .ppm file (P2, P3, P5 or P6)");
        return NULL;
    }
    bool raw = kind >= '5';
    int64_t channels = kind == '3' || kind == '6' ? 3 : 1;
    int64_t width = take_number(&r), height = take_number(&r), maxval = take_number(&r);
    if (width < 1 || height < 1 || maxval < 1 || maxval > 65535) {
        diag_file_error(module->diag, path, "the header is malformed (sides to %d, maxval to 65535)", LARGEST_SIDE);
        return NULL;
    }
    if (raw && r.at < r.end)
        r.at++; /* the one blank after maxval */
    if ((r.end - r.at) / channels / width < height * (raw && maxval > 255 ? 2 : 1)) {
        diag_file_error(module->diag, path, "truncated: %lld x %lld pixels are not there", (long long)width,
                        (long long)height);
        return NULL;
    }
    const int64_t dim[3] = {channels, height, width};
    Tensor *tensor = tensor_new(module->arena, module_plain_type(module, DT_F32, 3, dim));
    float *to = tensor->data;
    for (int64_t i = 0; i < height * width; i++)
        for (int64_t c = 0; c < channels; c++) {
            int64_t sample = take_sample(&r, raw, maxval);
            if (sample < 0 || sample > maxval) {
                diag_file_error(module->diag, path, sample < 0 ? "truncated" : "a sample is larger than maxval");
                return NULL;
            }
            to[c * height * width + i] =
                maxval == 255 ? (float)sample : (float)((double)sample * 255.0 / (double)maxval);
        }
    return tensor;
}

const Tensor *pnm_read(Module *module, Str path)
{
    FileMap map;
    if (!file_map(module->diag, path, &map))
        return NULL;
    const Tensor *tensor = pnm_parse(module, path, map.bytes, map.size);
    file_unmap(&map);
    return tensor;
}

bool pnm_write(Diag *diag, Str path, const Tensor *tensor)
{
    const Shape *shape = &tensor->type->shape;
    uint32_t first = 0, rank = shape->rank;
    FileWriter writer;
    Text header = {0};

    while (rank - first > 3 && shape->dim[first] == 1)
        first++;
    rank -= first;
    int64_t channels = rank == 3 ? shape->dim[first] : 1;
    if ((rank != 2 && rank != 3) || (channels != 1 && channels != 3))
        return diag_file_error(diag, path, "an image is [h, w], [1, h, w] or [3, h, w]");
    int64_t height = shape->dim[shape->rank - 2], width = shape->dim[shape->rank - 1], pixels = height * width;
    if (!file_writer_open(&writer, diag, path))
        return false;
    text_printf(&header, "P%c\n%lld %lld\n255\n", channels == 3 ? '6' : '5', (long long)width, (long long)height);
    file_writer_put(&writer, header.ptr, header.len);
    text_free(&header);
    for (int64_t i = 0; i < pixels * channels; i++) {
        double value = tensor_number(tensor, i % channels * pixels + i / channels);
        unsigned char byte = value >= 255 ? 255 : value > 0 ? (unsigned char)lrint(value) : 0; /* NaN is black */
        file_writer_put(&writer, &byte, 1);
    }
    return file_writer_commit(&writer, diag);
}
