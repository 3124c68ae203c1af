/* The C library opened at run time, as an interpreter opens it, and used from threads that were there before and threads that
 * come later: `threads LIBRARY keeps` where threads keep blocks, `threads LIBRARY frees` where they cannot. Prints OK, or the line of the failed check. */
#include "usm_nrt.h"
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition) do { if (!(condition)) { printf("line %d: %s\n", __LINE__, #condition); fflush(stdout); _exit(1); } } while (0)

enum { BLOCKS = 2000, THREADS = 20 };

static const usm_nrt_api *api;
static pthread_barrier_t opened;
static pthread_key_t late;

static size_t size_of(size_t index) { return index * 7 % 1100; }

static void make(NRT_MemInfo **blocks) {
    for (size_t i = 0; i < BLOCKS; i++) {
        CHECK((blocks[i] = api->numba->allocate(size_of(i))) != NULL);
        memset(api->numba->get_data(blocks[i]), (int)(i % 251), size_of(i));
    }
}

static void look_and_release(NRT_MemInfo **blocks) {
    for (size_t i = 0; i < BLOCKS; i++) {
        const unsigned char *data = api->numba->get_data(blocks[i]);
        for (size_t at = 0; at < size_of(i); at++) CHECK(data[at] == i % 251);
        api->numba->release(blocks[i]);
    }
}

/* Runs after the library's clean-up at the end of a thread. */
static void at_the_end(void *block) {
    api->numba->release(block);
    api->numba->release(api->numba->allocate(64));
}

static void *early(void *blocks) {
    pthread_barrier_wait(&opened);
    make(blocks);
    pthread_setspecific(late, api->numba->allocate(64));
    return NULL;
}

static void *later(void *blocks) {
    look_and_release(blocks);
    make(blocks);
    look_and_release(blocks);
    pthread_setspecific(late, api->numba->allocate(64));
    return NULL;
}

static size_t in_use(void) { return mallinfo2().uordblks; }

static void fork_and_use(void) {
    api->numba->release(api->numba->allocate(64));
    pid_t child = fork();
    if (child == 0) {
        static NRT_MemInfo *blocks[BLOCKS];
        make(blocks);
        look_and_release(blocks);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

int main(int count, char **arguments) {
    static NRT_MemInfo *blocks[THREADS][BLOCKS];
    pthread_t threads[THREADS];
    CHECK(count == 3 && pthread_key_create(&late, at_the_end) == 0);
    CHECK(pthread_barrier_init(&opened, NULL, THREADS + 1) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, early, blocks[i]) == 0);

    void *library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) puts(dlerror());
    CHECK(library != NULL);
    const usm_nrt_api *(*get_api)(uint32_t) = NULL;
    *(void **)&get_api = dlsym(library, "usm_nrt_get_api");
    CHECK(get_api != NULL && (api = get_api(USM_NRT_API_VERSION)) != NULL);
    api->set_stats(true);
    size_t before = in_use();
    pthread_barrier_wait(&opened);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(in_use() > before + THREADS * BLOCKS * 500);

    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, later, blocks[i]) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    /* Each of them kept up to 256 KiB; only their counters remain, and a little of the C library's memory. */
    CHECK(in_use() < before + 100 * 1024);

    /* This thread keeps blocks too, and returns them on request. */
    make(blocks[0]);
    look_and_release(blocks[0]);
    CHECK(in_use() < before + 500 * 1024);
    CHECK((in_use() > before + 200 * 1024) == (strcmp(arguments[2], "keeps") == 0));
    api->drain_thread_cache();
    CHECK(in_use() < before + 110 * 1024);

    fork_and_use();
    usm_nrt_stats stats;
    CHECK(api->stats(&stats) && stats.alloc == stats.free && stats.mi_alloc == stats.mi_free);
    CHECK(stats.mi_alloc == THREADS * (2 * BLOCKS + 4) + BLOCKS + 1);
    puts("OK");
    return 0;
}
