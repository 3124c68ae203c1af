/* Parent and child draw from the generator of "their" thread: prints OK when the numbers differ. */
#include "usm_nrt.h"
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
    usm_nrt_rnd_state *state = numba_get_np_random_state();
    usm_nrt_rnd_next(state);
    unsigned parent[624], child[624];
    int pipes[2];
    if (pipe(pipes) != 0) return 1;
    pid_t pid = fork();
    if (pid == 0) {
        state = numba_get_np_random_state();
        return write(pipes[1], state->mt, sizeof state->mt) == sizeof state->mt ? 0 : 1;
    }
    int status;
    if (waitpid(pid, &status, 0) != pid || status != 0) return 2;
    if (read(pipes[0], child, sizeof child) != sizeof child) return 3;
    memcpy(parent, numba_get_np_random_state()->mt, sizeof parent);
    puts(memcmp(parent, child, sizeof parent) != 0 ? "OK" : "equal");
    return 0;
}
