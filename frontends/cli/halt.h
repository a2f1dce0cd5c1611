/* A first signal asks a long work to end after its present step, so that what it has can be kept; a second one does
 * what it would have done before. */
#ifndef NNC_CLI_HALT_H
#define NNC_CLI_HALT_H

void halt_watch(void); /* from now on; forgets earlier signals */
void halt_unwatch(void);
int halt_signal(void); /* which has come; 0: none */

#endif
