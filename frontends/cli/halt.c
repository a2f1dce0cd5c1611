#include "cli/halt.h"

#include <signal.h>
#include <stddef.h>

static const int watched[] = {SIGINT, SIGTERM, SIGHUP};
#define WATCHED (sizeof watched / sizeof *watched)

static volatile sig_atomic_t stopped_by;
static struct sigaction before[WATCHED];

void halt_unwatch(void)
{
    for (size_t i = 0; i < WATCHED; i++)
        sigaction(watched[i], &before[i], NULL);
}

static void stop(int signal_number)
{
    stopped_by = signal_number;
    halt_unwatch();
}

void halt_watch(void)
{
    struct sigaction action = {.sa_handler = stop, .sa_flags = SA_RESTART}; /* lines that are being written are whole */
    stopped_by = 0;
    for (size_t i = 0; i < WATCHED; i++) {
        sigaction(watched[i], &action, &before[i]);
        if (before[i].sa_handler == SIG_IGN) /* as nohup has it */
            sigaction(watched[i], &before[i], NULL);
    }
}

int halt_signal(void)
{
    return stopped_by;
}
