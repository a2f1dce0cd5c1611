/* CUDA on a CPU, as far as emitted code uses it, so that tests run where no GPU is: g++ -x c++ -I this folder.
 *
 * A launch calls the kernel for every thread of every block, the last first, so that what depends on another order
 * shows; what races finds ThreadSanitizer (races.h).  A kernel whose threads meet runs its blocks one by one, each
 * thread on a stack of its own (ucontext); it aborts when some threads of a block wait and others have ended. */
#ifndef NNC_TESTS_EMULATE_CUDA_RUNTIME_API_H
#define NNC_TESTS_EMULATE_CUDA_RUNTIME_API_H

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ucontext.h>

#include "races.h"

enum cudaError_t { cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorMemoryAllocation = 2 };
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2, cudaMemcpyDeviceToDevice = 3 };
typedef struct CUstream_st *cudaStream_t;

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(threads)
#define __shared__       static
#define __align__(bytes) __attribute__((aligned(bytes)))
#define NNC_LAUNCH(kernel, blocks, threads, stream, ...)                                                               \
    ((void)(stream), emulate::launch((blocks), (threads), [&] { kernel(__VA_ARGS__); }))

inline float __fmul_rn(float a, float b)
{
    return a * b; /* compiled without contraction */
}

struct EmulatedNumber {
    unsigned number;
    NNC_UNSEEN operator unsigned() const
    {
        return number;
    }
};

struct EmulatedIndex {
    EmulatedNumber x;
};
inline EmulatedIndex blockIdx, threadIdx, gridDim;

namespace emulate
{

constexpr unsigned most_threads = 1024;
constexpr size_t stack_bytes = 64 << 10;

struct Fiber {
    ucontext_t context;
    char *stack;
    void *thread; /* races.h */
    bool done;
};

inline Fiber fiber[most_threads];
inline ucontext_t scheduler;
inline bool met;                        /* some thread has waited for others */
inline void (*body)(void *), *argument; /* what a fiber runs */
inline unsigned char slot[most_threads][8];

NNC_UNSEEN inline void fiber_main()
{
    comes_after(begin);
    body(argument);
    comes_before(end);
    fiber[threadIdx.x].done = true;
    go_back();
    setcontext(&scheduler);
}

NNC_UNSEEN inline void wait()
{
    const unsigned self = threadIdx.x;
    met = true;
    comes_before(meeting);
    go_back();
    swapcontext(&fiber[self].context, &scheduler);
    threadIdx.x.number = self;
    comes_after(meeting);
}

NNC_UNSEEN inline void start(unsigned thread)
{
    Fiber *f = &fiber[thread];
    f->stack = f->stack ? f->stack : (char *)malloc(stack_bytes);
    f->thread = new_thread(f->thread);
    f->done = false;
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack;
    f->context.uc_stack.ss_size = stack_bytes;
    f->context.uc_link = nullptr;
    makecontext(&f->context, fiber_main, 0);
}

/* Every thread of the block runs to where it waits, again and again. */
NNC_UNSEEN inline void run_block(unsigned threads)
{
    for (unsigned t = 0; t < threads; t++)
        start(t);
    comes_before(begin);
    for (unsigned done = 0; done < threads;) {
        done = 0;
        for (unsigned t = threads; t-- > 0;) {
            threadIdx.x.number = t;
            if (!fiber[t].done) {
                go_to(fiber[t].thread);
                swapcontext(&scheduler, &fiber[t].context);
            }
            done += fiber[t].done;
        }
        if (done && done < threads) {
            fprintf(stderr, "emulation: threads of a block have ended while others wait\n");
            abort();
        }
    }
    if (met)
        comes_after(end);
}

template <typename Kernel> NNC_UNSEEN void launch(long long blocks, unsigned threads, Kernel kernel)
{
    body = [](void *k) { (*(Kernel *)k)(); };
    argument = &kernel;
    met = false;
    gridDim.x.number = (unsigned)blocks;
    for (long long b = blocks; b-- > 0;) {
        blockIdx.x.number = (unsigned)b;
        if (finds_races || met || b == blocks - 1) {
            run_block(threads);
            continue;
        }
        for (unsigned t = threads; t-- > 0;) {
            threadIdx.x.number = t;
            kernel();
        }
    }
    comes_after(end);
}

} // namespace emulate

inline void __syncthreads()
{
    emulate::wait();
}

template <typename T> T __shfl_xor_sync(unsigned, T x, int step)
{
    memcpy(emulate::slot[threadIdx.x], &x, sizeof x);
    emulate::wait();
    memcpy(&x, emulate::slot[threadIdx.x ^ (unsigned)step], sizeof x);
    emulate::wait();
    return x;
}

inline cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    *memory = aligned_alloc(256, (bytes + 256) / 256 * 256);
    return *memory ? cudaSuccess : cudaErrorMemoryAllocation;
}

inline cudaError_t cudaFree(void *memory)
{
    free(memory);
    return cudaSuccess;
}

inline cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind)
{
    memcpy(to, from, bytes);
    return cudaSuccess;
}

inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t)
{
    return cudaMemcpy(to, from, bytes, kind);
}

template <typename T>
cudaError_t cudaMemcpyFromSymbolAsync(void *to, const T &symbol, size_t bytes, size_t begin, cudaMemcpyKind,
                                      cudaStream_t)
{
    memcpy(to, (const char *)&symbol + begin, bytes);
    return cudaSuccess;
}

inline cudaError_t cudaMemset(void *memory, int value, size_t bytes)
{
    memset(memory, value, bytes);
    return cudaSuccess;
}

inline cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t)
{
    return cudaMemset(memory, value, bytes);
}

inline cudaError_t cudaDeviceSynchronize()
{
    return cudaSuccess;
}

inline cudaError_t cudaStreamSynchronize(cudaStream_t)
{
    return cudaSuccess;
}

inline const char *cudaGetErrorString(cudaError_t status)
{
    return status ? "error" : "no error";
}

#endif
