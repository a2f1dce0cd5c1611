/* Times an entry of a model on the GPU:  steps [KERNELS]
 *
 * gpu.py puts "call.h" beside it, which includes NAME.cu and has begin(), which fills what is handed over, and call().
 * Arrays hold numbers of [-1, 1), integers small ones.  Prints microseconds of a run: the median over runs of a
 * captured graph, or of calls one by one where a run waits for a condition.  With KERNELS, a line for each launch of
 * one call instead. */
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <type_traits>
#include <vector>

#include <cuda_runtime_api.h>

struct Launch {
    const char *kernel;
    long long blocks;
    cudaEvent_t begin, end;
};
static std::vector<Launch> launches;
static bool recording;

static cudaEvent_t mark(cudaStream_t stream)
{
    cudaEvent_t event;
    cudaEventCreate(&event);
    cudaEventRecord(event, stream);
    return event;
}

#define NNC_LAUNCH(kernel, blocks, threads, stream, ...)                                                               \
    do {                                                                                                               \
        const cudaEvent_t begin = recording ? mark(stream) : nullptr;                                                  \
        kernel<<<(blocks), (threads), 0, (stream)>>>(__VA_ARGS__);                                                     \
        const cudaError_t launch_status = cudaGetLastError();                                                          \
        if (launch_status != cudaSuccess)                                                                              \
            return (int)launch_status;                                                                                 \
        if (recording)                                                                                                 \
            launches.push_back({#kernel, (long long)(blocks), begin, mark(stream)});                                   \
    } while (0)

static void check(int status, const char *what)
{
    if (status == cudaSuccess)
        return;
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorString((cudaError_t)status));
    exit(1);
}

static void *device_memory(size_t bytes)
{
    void *memory = nullptr;
    check(cudaMalloc(&memory, bytes + 1), "cudaMalloc");
    return memory;
}

/* An array of a call. */
template <typename T> static T *filled(size_t count)
{
    std::vector<T> host(count);
    unsigned random = 1;
    for (T &e : host) {
        random = random * 1664525u + 1013904223u;
        e = std::is_floating_point<T>::value ? (T)((random >> 8) / 8388608.0 - 1) : (T)(random >> 28);
    }
    T *memory = (T *)device_memory(count * sizeof(T));
    check(cudaMemcpy(memory, host.data(), count * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
    return memory;
}

static void *read_file(const char *path, size_t bytes)
{
    std::vector<char> host(bytes);
    FILE *file = fopen(path, "rb");
    if (!file || fread(host.data(), 1, bytes, file) != bytes)
        check(cudaErrorInvalidValue, path);
    fclose(file);
    void *memory = device_memory(bytes);
    check(cudaMemcpy(memory, host.data(), bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
    return memory;
}

static cudaStream_t stream;

#include "call.h"

static double median(std::vector<double> &times)
{
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

static void print_kernels()
{
    for (int round = 0; round < 5; round++) {
        launches.clear();
        recording = true;
        check(call(), "run");
        check(cudaStreamSynchronize(stream), "run");
    }
    for (const Launch &launch : launches) {
        float ms;
        check(cudaEventElapsedTime(&ms, launch.begin, launch.end), "time");
        printf("%9.2f us %8lld blocks %s\n", 1e3 * ms, launch.blocks, launch.kernel);
    }
}

/* Runs of a captured graph, each between two events; false where the entry cannot be captured. */
static bool time_graph(std::vector<double> &times)
{
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t ready;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
    int status = call();
    if (cudaStreamEndCapture(stream, &graph) != cudaSuccess || status ||
        cudaGraphInstantiate(&ready, graph, 0) != cudaSuccess) {
        cudaGetLastError();
        return false;
    }
    for (int i = 0; i < 110; i++) {
        cudaEvent_t begin = mark(stream);
        check(cudaGraphLaunch(ready, stream), "launch");
        cudaEvent_t end = mark(stream);
        check(cudaStreamSynchronize(stream), "run");
        float ms;
        check(cudaEventElapsedTime(&ms, begin, end), "time");
        if (i >= 10)
            times.push_back(1e3 * ms);
    }
    return true;
}

static void time_calls(std::vector<double> &times)
{
    for (int i = 0; i < 30; i++) {
        auto begin = std::chrono::steady_clock::now();
        check(call(), "run");
        check(cudaStreamSynchronize(stream), "run");
        double us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
        if (i >= 5)
            times.push_back(us);
    }
}

int main(int count, char **)
{
    check(cudaStreamCreate(&stream), "cudaStreamCreate");
    begin();
    std::vector<double> times;
    check(call(), "run");
    check(cudaStreamSynchronize(stream), "run");
    if (count > 1) {
        print_kernels();
        return 0;
    }
    bool captured = time_graph(times);
    if (!captured)
        time_calls(times);
    printf("%.1f %s\n", median(times), captured ? "graph" : "calls");
    return 0;
}
