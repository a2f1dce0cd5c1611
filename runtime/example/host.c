/* A host that runs the first entry of any emitted model: it reads each input as raw bytes from a file, in the model's
 * order, and writes the outputs to standard output as numbers.
 *
 *     nnc compile digits.nnc -o out --emit c,lib --weights file
 *     cc -DMODEL=digits_model host.c out/libdigits.a -lnnc-runtime -lm -o host
 *     ./host out/digits.weights image.raw */
#include <stdio.h>
#include <stdlib.h>

#include <nnc.h>

extern const nnc_model MODEL;

static void *read_exactly(const char *path, size_t bytes)
{
    FILE *file = fopen(path, "rb");
    void *data = malloc(bytes ? bytes : 1);
    if (!file || !data || fread(data, 1, bytes, file) != bytes) {
        fprintf(stderr, "%s: %zu bytes are wanted\n", path, bytes);
        exit(1);
    }
    fclose(file);
    return data;
}

static void stop_unless(nnc_status status)
{
    if (status == NNC_OK)
        return;
    fprintf(stderr, "%s: %s\n", MODEL.name, nnc_status_text(status));
    exit(1);
}

int main(int count, char **word)
{
    const nnc_entry *entry = MODEL.entry;
    nnc_tensor input[16], output[16];
    nnc_weights weights;
    void *arena = nnc_arena_new(&MODEL);

    if (count < 2 || (uint32_t)count != entry->input_count + 2 || entry->input_count > 16 || entry->output_count > 16) {
        fprintf(stderr, "usage: host WEIGHTS INPUT...\n");
        return 2;
    }
    stop_unless(arena ? NNC_OK : NNC_E_MEMORY);
    stop_unless(nnc_weights_open(&weights, &MODEL, word[1]));
    void *params = nnc_params_new(&MODEL, 0, &weights), *state = nnc_state_new(&MODEL, &weights);
    stop_unless(params && state ? NNC_OK : NNC_E_MEMORY);
    for (uint32_t i = 0; i < entry->input_count; i++)
        input[i] = nnc_tensor_of(&entry->input[i], read_exactly(word[2 + i], entry->input[i].bytes));
    for (uint32_t i = 0; i < entry->output_count; i++)
        output[i] = nnc_tensor_of(&entry->output[i], calloc(1, entry->output[i].bytes + 1));

    stop_unless(nnc_call(&MODEL, 0, input, entry->input_count, output, entry->output_count, arena, params, state,
                         &weights, NULL));

    for (uint32_t i = 0; i < entry->output_count; i++) {
        printf("%s:", entry->output[i].name);
        for (size_t k = 0; output[i].dtype.bits == 32 && k < entry->output[i].bytes / sizeof(float); k++)
            printf(" %g", ((const float *)output[i].data)[k]);
        printf("\n");
    }
    nnc_weights_close(&weights);
    nnc_state_free(state);
    nnc_params_free(params);
    nnc_arena_free(arena);
    return 0;
}
