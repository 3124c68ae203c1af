/* Forks while other threads are inside of the runtime: prints OK when no child hangs. */
#include "usm_nrt.h"
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static const usm_nrt_api *api;
static usm_nrt_slots *slots;
static volatile int stop;

static void use(int index) {
    char name[16];
    int length = snprintf(name, sizeof name, "f%d", index % 1000);
    NRT_MemInfo_release(NRT_MemInfo_alloc(64));
    api->slots_get(slots, name, (size_t)length);
    api->slots_unresolved(slots, NULL, NULL);
    if (index % 3 == 2) api->set_kept_allocator(_nrt_get_sample_external_allocator());
    else api->set_allocator(index % 3 ? _nrt_get_sample_external_allocator() : NULL);
    NRT_MemInfo_release(NRT_MemInfo_alloc(64));
    api->live_blocks(NULL, NULL);
}

static void *work(void *unused) {
    for (int index = 0; !stop; index++) use(index);
    return unused;
}

int main(void) {
    api = usm_nrt_get_api(USM_NRT_API_VERSION);
    slots = api->slots_new(&slots);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, work, NULL);
    int hung = 0;
    for (int round = 0; round < 100 && hung == 0; round++) {
        api->set_tracking(round % 2 == 0); /* tracked blocks are of no slab */
        usleep(500);
        pid_t child = fork();
        if (child == 0) {
            alarm(60); /* more than a child that does not wait can take on a busy machine */
            for (int index = 0; index < 10; index++) use(index);
            _exit(0);
        }
        int status = 1;
        if (waitpid(child, &status, 0) != child || status != 0) {
            hung = 1;
            /* 0xe: the alarm ended it; another signal or code: it failed */
            printf("round %d: the child's status is 0x%x\n", round, status);
        }
    }
    stop = 1;
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    if (hung == 0) puts("OK");
    return 0;
}
