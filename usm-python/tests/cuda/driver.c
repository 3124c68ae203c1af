/* A CUDA driver without a GPU: the functions that usm calls, over plain memory, so that the exchange with CUDA's
 * producers and consumers runs everywhere. Work on a stream is done when the stream is asked for it: by a wait of another
 * stream, or when an event, or a later one, is looked at for the third time. What happens is written to a log that the tests read, and the
 * driver can be told to hold all work back, to have no memory left, to have lost its device, or to fail in the next call of a function. The
 * calls that operations make are written to another log. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, DEVICE_UNAVAILABLE = 46, NOT_READY = 600 };
enum { DEVICES = 2, BLOCKS = 4096, LOG = 1 << 16 };

typedef struct { int managed, type, device; char *start; size_t size; } Block;
typedef struct { int polls; long number; void *stream; } Event;

static Block blocks[BLOCKS];
static char text[LOG];
static size_t used;
static _Thread_local int current = -1;
static _Thread_local void *stack[16];
static _Thread_local int depth;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int held, refusing, lost, misuses, events;
/* Records so far, and the last one that is known to be done: the device works in the order of submission. */
static atomic_long recorded, finished;

#define SAY(...) \
    do { \
        pthread_mutex_lock(&lock); \
        used += used < LOG - 256 ? (size_t)snprintf(text + used, 256, __VA_ARGS__) : 0; \
        pthread_mutex_unlock(&lock); \
    } while (0)
/* What a device that is lost answers. */
#define ALIVE \
    do { \
        if (lost) return DEVICE_UNAVAILABLE; \
    } while (0)

const char *fake_log(void) { return text; }
void fake_clear(void) { used = 0; text[0] = 0; }
void fake_hold(int on) { held = on; }
void fake_refuse(int on) { refusing = on; }
void fake_lose(int on) { lost = on; }
/* The next call of the function with this name fails with this code. */
static const char *failing;
static int failure;
void fake_fail(const char *name, int code) { failure = code; failing = name; }
static int fails(const char *name) {
    if (!failing || strcmp(failing, name)) return SUCCESS;
    failing = NULL;
    return failure;
}
/* Names of the functions that were called for operations, one a line. */
static char calls[LOG];
static size_t called;
#define CALLED \
    do { \
        pthread_mutex_lock(&lock); \
        called += called < LOG - 64 ? (size_t)snprintf(calls + called, 64, "%s\n", __func__) : 0; \
        pthread_mutex_unlock(&lock); \
    } while (0)
const char *fake_calls(void) { return calls; }
void fake_clear_calls(void) { called = 0; calls[0] = 0; }
/* Events that were made and not destroyed. */
int fake_events(void) { return events; }
/* Frees of what is not there. */
int fake_misuses(void) { return misuses; }
int fake_live(void) {
    int live = 0;
    for (int i = 0; i < BLOCKS; i++) live += blocks[i].start != NULL;
    return live;
}
/* Memory as another library of the process would have it. */
void *fake_foreign(size_t size, int type, int managed, int device);

int cuInit(unsigned flags) { (void)flags; return SUCCESS; }
int cuDeviceGetCount(int *count) { *count = DEVICES; return SUCCESS; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return SUCCESS; }
int cuDeviceGetName(char *name, int len, int device) { snprintf(name, len, "fake %d", device); return SUCCESS; }
int cuDriverGetVersion(int *version) { *version = 12040; return SUCCESS; }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { (void)device; *bytes = (size_t)1 << 30; return SUCCESS; }
int cuDeviceGetAttribute(int *value, int which, int device) {
    (void)device;
    /* Threads and shared memory of a block, whether the device is part of the host. */
    *value = which == 1 ? 1024 : which == 8 ? 49152 : which == 18 ? 0 : 1;
    return SUCCESS;
}
int cuDevicePrimaryCtxRetain(void **context, int device) { *context = (void *)(uintptr_t)(0x100 + device); return SUCCESS; }
int cuDevicePrimaryCtxRelease_v2(int device) { CALLED; (void)device; return SUCCESS; }
int cuCtxGetCurrent(void **context) { CALLED; *context = depth ? stack[depth - 1] : NULL; return SUCCESS; }
int cuCtxPushCurrent_v2(void *context) {
    CALLED;
    if (depth == 16) return INVALID_VALUE;
    stack[depth++] = context;
    current = (int)(uintptr_t)context - 0x100;
    return SUCCESS;
}
int cuCtxGetDevice(int *device) { *device = current; return SUCCESS; }
int cuCtxPopCurrent_v2(void **context) {
    CALLED;
    if (!depth) return INVALID_VALUE;
    *context = stack[--depth];
    if (depth) current = (int)(uintptr_t)stack[depth - 1] - 0x100;
    return SUCCESS;
}

void *fake_foreign(size_t size, int type, int managed, int device) {
    char *start = aligned_alloc(256, (size + 255) / 256 * 256);
    if (!start) return NULL;
    memset(start, 0, size);
    pthread_mutex_lock(&lock);
    int i = 0;
    while (i < BLOCKS && blocks[i].start) i++;
    if (i < BLOCKS) blocks[i] = (Block){managed, type, device, start, size};
    pthread_mutex_unlock(&lock);
    if (i < BLOCKS) return start;
    free(start);
    return NULL;
}
static int release(uintptr_t address) {
    pthread_mutex_lock(&lock);
    int i = 0;
    while (i < BLOCKS && (uintptr_t)blocks[i].start != address) i++;
    if (i < BLOCKS) blocks[i].start = NULL;
    pthread_mutex_unlock(&lock);
    if (!address || i == BLOCKS) {
        misuses++;
        return INVALID_VALUE;
    }
    free((void *)address);
    return SUCCESS;
}
static int allocate(uintptr_t *out, size_t size, int type, int managed) {
    ALIVE;
    *out = refusing ? 0 : (uintptr_t)fake_foreign(size, type, managed, current);
    return *out ? SUCCESS : OUT_OF_MEMORY;
}
int cuMemAlloc_v2(uintptr_t *out, size_t size) { return allocate(out, size, 2, 0); }
int cuMemAllocManaged(uintptr_t *out, size_t size, unsigned flags) { (void)flags; return allocate(out, size, 2, 1); }
int cuMemHostAlloc(uintptr_t *out, size_t size, unsigned flags) { (void)flags; return allocate(out, size, 1, 0); }
int cuMemFree_v2(uintptr_t address) { CALLED; return release(address); }
/* The order of a stream is that of the calls. A driver that is older than pools lacks these. */
#ifndef WITHOUT_POOLS
int cuMemAllocAsync(uintptr_t *out, size_t size, void *stream) {
    CALLED;
    SAY("allocate %p\n", stream);
    int code = fails(__func__);
    return code ? code : allocate(out, size, 2, 0);
}
int cuMemFreeAsync(uintptr_t address, void *stream) {
    CALLED;
    ALIVE;
    SAY("free %p\n", stream);
    int code = fails(__func__);
    return code ? code : release(address);
}
#endif
int cuMemFreeHost(void *address) { return release((uintptr_t)address); }

int cuPointerGetAttributes(unsigned count, const int *which, void **answers, uintptr_t address) {
    for (int i = 0; i < BLOCKS; i++) {
        pthread_mutex_lock(&lock);
        Block copy = blocks[i], *b = &copy;
        pthread_mutex_unlock(&lock);
        if (!b->start || address < (uintptr_t)b->start || address >= (uintptr_t)b->start + b->size) continue;
        for (unsigned n = 0; n < count; n++) switch (which[n]) {
            case 2: *(unsigned *)answers[n] = b->type; break;
            case 8: *(unsigned *)answers[n] = b->managed; break;
            case 9: *(int *)answers[n] = b->device; break;
            case 11: *(uintptr_t *)answers[n] = (uintptr_t)b->start; break;
            case 12: *(size_t *)answers[n] = b->size; break;
        }
        return SUCCESS;
    }
    return INVALID_VALUE;
}

int cuStreamCreate(void **stream, unsigned flags) { (void)flags; *stream = malloc(16); SAY("create %p\n", *stream); return SUCCESS; }
int cuStreamDestroy_v2(void *stream) { SAY("destroy %p\n", stream); free(stream); return SUCCESS; }
int cuStreamQuery(void *stream) {
    CALLED;
    ALIVE;
    (void)stream;
    return held && recorded > finished ? NOT_READY : SUCCESS;
}
int cuStreamWaitEvent(void *stream, void *event, unsigned flags) {
    CALLED;
    ALIVE;
    (void)flags;
    SAY("wait %p %p\n", stream, ((Event *)event)->stream);
    return SUCCESS;
}
int cuMemcpyAsync(uintptr_t to, uintptr_t from, size_t size, void *stream) {
    CALLED;
    ALIVE;
    SAY("copy %p\n", stream);
    memmove((void *)to, (void *)from, size);
    return SUCCESS;
}
/* `CUDA_MEMCPY2D`, of which the unified addresses are used. */
typedef struct {
    size_t src_x, src_y;
    unsigned src_type;
    const void *src_host;
    uintptr_t src;
    void *src_array;
    size_t src_pitch, dst_x, dst_y;
    unsigned dst_type;
    void *dst_host;
    uintptr_t dst;
    void *dst_array;
    size_t dst_pitch, width, height;
} Rows;
int cuMemcpy2DAsync_v2(const Rows *rows, void *stream) {
    ALIVE;
    SAY("rows %p\n", stream);
    if (rows->src_type != 4 || rows->dst_type != 4) return INVALID_VALUE;
    for (size_t row = 0; row < rows->height; row++)
        memcpy((void *)(rows->dst + row * rows->dst_pitch), (void *)(rows->src + row * rows->src_pitch), rows->width);
    return SUCCESS;
}
int cuMemsetD8Async(uintptr_t to, unsigned char value, size_t count, void *stream) {
    ALIVE;
    SAY("fill %p\n", stream);
    memset((void *)to, value, count);
    return SUCCESS;
}
int cuMemsetD16Async(uintptr_t to, unsigned short value, size_t count, void *stream) {
    ALIVE;
    (void)stream;
    for (size_t i = 0; i < count; i++) ((unsigned short *)to)[i] = value;
    return SUCCESS;
}
int cuMemsetD32Async(uintptr_t to, unsigned value, size_t count, void *stream) {
    ALIVE;
    (void)stream;
    for (size_t i = 0; i < count; i++) ((unsigned *)to)[i] = value;
    return SUCCESS;
}
int cuMemsetD2D32Async(uintptr_t to, size_t pitch, unsigned value, size_t width, size_t height, void *stream) {
    (void)stream;
    for (size_t row = 0; row < height; row++)
        for (size_t i = 0; i < width; i++) ((unsigned *)(to + row * pitch))[i] = value;
    return SUCCESS;
}
int cuMemPrefetchAsync(uintptr_t a, size_t n, int d, void *s) { (void)a; (void)n; (void)d; (void)s; return SUCCESS; }
int cuMemAdvise(uintptr_t a, size_t n, int w, int d) { (void)a; (void)n; (void)w; (void)d; return SUCCESS; }

int cuEventCreate(void **event, unsigned flags) {
    CALLED;
    ALIVE;
    (void)flags;
    *event = calloc(1, sizeof(Event));
    events++;
    return SUCCESS;
}
int cuEventDestroy_v2(void *event) { CALLED; events--; free(event); return SUCCESS; }
int cuEventRecord(void *event, void *stream) {
    CALLED;
    ALIVE;
    int code = fails(__func__);
    if (code) return code;
    ((Event *)event)->stream = stream;
    ((Event *)event)->polls = 0;
    ((Event *)event)->number = ++recorded;
    SAY("record %p\n", stream);
    return SUCCESS;
}
int cuEventQuery(void *event) {
    CALLED;
    ALIVE;
    Event *asked = event;
    if (asked->number > finished) {
        if (held || ++asked->polls < 3) return NOT_READY;
        finished = asked->number;
    }
    SAY("done %p\n", ((Event *)event)->stream);
    return SUCCESS;
}

/* A module has every function, with any parameters; a launch does nothing. */
int cuModuleLoadDataEx(void **module, const void *image, unsigned count, const int *names, void **values) {
    CALLED;
    (void)image, (void)count, (void)names, (void)values;
    *module = malloc(16);
    return SUCCESS;
}
int cuModuleUnload(void *module) { CALLED; free(module); return SUCCESS; }
int cuModuleGetFunction(void **function, void *module, const char *name) { (void)name; *function = module; return SUCCESS; }
int cuFuncGetAttribute(int *value, int which, void *function) {
    (void)function;
    *value = which == 0 ? 1024 : 0;
    return SUCCESS;
}
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **parameters, void **extra) {
    CALLED;
    ALIVE;
    (void)function, (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared, (void)parameters, (void)extra;
    int code = fails(__func__);
    if (code) return code;
    SAY("launch %p\n", stream);
    return SUCCESS;
}
