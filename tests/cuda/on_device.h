/* A call of CUDA code from host.c, whose arrays are the host's: they are copied to blocks of device memory of exactly
 * their sizes and back, the arena and what outputs held before too. */
#ifndef NNC_TESTS_ON_DEVICE_H
#define NNC_TESTS_ON_DEVICE_H

#include <cstdio>
#include <utility>
#include <vector>

#include "nnc_model.h"

namespace on_device
{

struct Array {
    void *host, *device;
    size_t bytes;
};

inline int move(const Array &array, cudaMemcpyKind kind)
{
    bool in = kind == cudaMemcpyHostToDevice;
    return array.bytes ? cudaMemcpy(in ? array.device : array.host, in ? array.host : array.device, array.bytes, kind)
                       : cudaSuccess;
}

template <typename... Parameter, size_t... I>
int call(int (*run)(Parameter...), const std::vector<Array> &array, std::index_sequence<I...>)
{
    return run((Parameter)array[I].device...);
}

/* `run` takes inputs, outputs, the arena and a stream. */
template <typename... Parameter>
int run(int (*run)(Parameter...), const nnc_entry &entry, size_t arena_bytes, const void *const *input,
        void *const *output, void *arena)
{
    std::vector<Array> array;
    for (uint32_t i = 0; i < entry.input_count; i++)
        array.push_back({(void *)input[i], nullptr, entry.input[i].bytes});
    for (uint32_t i = 0; i < entry.output_count; i++)
        array.push_back({output[i], nullptr, entry.output[i].bytes});
    array.push_back({arena, nullptr, arena_bytes});
    array.push_back({}); /* the default stream */
    int status = cudaSuccess;
    for (Array &a : array) {
        status = status ? status : a.bytes ? cudaMalloc(&a.device, a.bytes) : cudaSuccess;
        status = status ? status : move(a, cudaMemcpyHostToDevice);
    }
    status = status ? status : call(run, array, std::index_sequence_for<Parameter...>());
    status = status ? status : cudaDeviceSynchronize();
    for (Array &a : array) {
        status = status ? status : move(a, cudaMemcpyDeviceToHost);
        cudaFree(a.device);
    }
    if (status)
        fprintf(stderr, "%s\n", cudaGetErrorString((cudaError_t)status));
    return status;
}

} // namespace on_device

#endif
