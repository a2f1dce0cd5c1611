/* Under ThreadSanitizer (g++ -fsanitize=thread) each thread of a block of the emulated device is one of its fibers,
 * which nothing orders but a meeting with others and the launch around it: what would be a race on a GPU is reported,
 * though threads run one after another.  Those that are the same in their blocks are one fiber; blocks whose threads
 * meet take turns in shared memory, so these are ordered. */
#ifndef NNC_TESTS_EMULATE_RACES_H
#define NNC_TESTS_EMULATE_RACES_H

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>

#define NNC_UNSEEN __attribute__((no_sanitize("thread"))) /* the emulation itself */

namespace emulate
{

constexpr bool finds_races = true;
inline void *device; /* the fiber of what launches */
inline char begin, meeting, end;

NNC_UNSEEN inline void *new_thread(void *before)
{
    device = __tsan_get_current_fiber();
    return before ? before : __tsan_create_fiber(0);
}

NNC_UNSEEN inline void go_to(void *thread)
{
    __tsan_switch_to_fiber(thread, __tsan_switch_to_fiber_no_sync);
}

/* To what launches */
NNC_UNSEEN inline void go_back()
{
    __tsan_switch_to_fiber(device, __tsan_switch_to_fiber_no_sync);
}

/* What came before `order` in one comes before what follows it in another. */
NNC_UNSEEN inline void comes_before(char &order)
{
    __tsan_release(&order);
}

NNC_UNSEEN inline void comes_after(char &order)
{
    __tsan_acquire(&order);
}

} // namespace emulate

#else
#define NNC_UNSEEN

namespace emulate
{

constexpr bool finds_races = false;
inline char begin, meeting, end;

inline void *new_thread(void *)
{
    return nullptr;
}

inline void go_to(void *)
{
}

inline void go_back()
{
}

inline void comes_before(char &)
{
}

inline void comes_after(char &)
{
}

} // namespace emulate

#endif

#endif
