/* A layer of the OpenCL loader (OPENCL_LAYERS) in which operations fail, to test SYCL on a CPU, where none fails by itself.
 *
 * The next fill or copy after `layer_fail()` never runs. Until `layer_release()` it is pending, then it has failed. A command that names a failed event
 * in its wait list does not run and fails too, as OpenCL has it; the next command of an in-order queue runs, as OpenCL allows.
 *
 * No headers: the table of functions has one order for all loaders (the extension cl_khr_icd). */

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef int32_t status;
typedef uint32_t number;
typedef void *object;

enum { QUEUE_INFO = 12, WAIT = 41, EVENT_INFO = 42, RETAIN_EVENT = 43, USER_EVENT = 84, SET_USER_EVENT = 85, MARKER = 105, BARRIER = 106,
       EXTENSION = 107, KNOWN = 108, ROOM = 512 };
enum { QUEUE_CONTEXT = 0x1090, EXECUTION_STATUS = 0x11D3, OUT_OF_RESOURCES = -5, FAILED_IN_LIST = -14, INVALID_VALUE = -30, LAYER_API = 0x4240, VERSION_100 = 100 };

static void *table[ROOM], *next[ROOM];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Retained for good, so that no handle comes twice. */
static object failed[4096], held[64];
static int failures, holds, armed;

#define NEXT(index, ...) ((status (*)(__VA_ARGS__))next[index])

static int has_failed(number count, const object *events)
{
    int found = 0;
    pthread_mutex_lock(&lock);
    for (number i = 0; i < count; i++)
        for (int j = 0; j < failures; j++)
            found |= events[i] == failed[j];
    pthread_mutex_unlock(&lock);
    return found;
}

static void fail(object event)
{
    if (failures == sizeof failed / sizeof *failed)
        abort();
    NEXT(RETAIN_EVENT, object)(event);
    pthread_mutex_lock(&lock);
    failed[failures++] = event;
    pthread_mutex_unlock(&lock);
}

/* A marker in the place of a command that fails; with `hold` behind an event that the program sets. */
static status instead(object queue, number count, const object *events, object *out, int hold)
{
    object list[64], event, context;
    status code;
    if (count > 62)
        abort();
    if (count)
        memcpy(list, events, count * sizeof *list);
    if (hold) {
        NEXT(QUEUE_INFO, object, number, size_t, void *, size_t *)(queue, QUEUE_CONTEXT, sizeof context, &context, NULL);
        list[count] = ((object(*)(object, status *))next[USER_EVENT])(context, &code);
        if (code)
            abort();
        pthread_mutex_lock(&lock);
        held[holds++] = list[count++];
        pthread_mutex_unlock(&lock);
    }
    code = NEXT(MARKER, object, number, const object *, object *)(queue, count, list, &event);
    if (code == 0) {
        fail(event);
        if (out)
            *out = event;
    }
    return code;
}

static int takes_it(void)
{
    pthread_mutex_lock(&lock);
    int taken = armed;
    armed = 0;
    pthread_mutex_unlock(&lock);
    return taken;
}

static status (*next_copy)(object, number, void *, const void *, size_t, number, const object *, object *);
static status (*next_fill)(object, void *, const void *, size_t, size_t, number, const object *, object *);

static status copy(object queue, number blocking, void *to, const void *from, size_t bytes, number count, const object *events, object *out)
{
    int hold = takes_it();
    return hold || has_failed(count, events) ? instead(queue, count, events, out, hold) : next_copy(queue, blocking, to, from, bytes, count, events, out);
}

static status fill(object queue, void *to, const void *pattern, size_t width, size_t bytes, number count, const object *events, object *out)
{
    int hold = takes_it();
    return hold || has_failed(count, events) ? instead(queue, count, events, out, hold) : next_fill(queue, to, pattern, width, bytes, count, events, out);
}

static status marker(object queue, number count, const object *events, object *out)
{
    return has_failed(count, events) ? instead(queue, count, events, out, 0)
                                     : NEXT(MARKER, object, number, const object *, object *)(queue, count, events, out);
}

static status barrier(object queue, number count, const object *events, object *out)
{
    status code = NEXT(BARRIER, object, number, const object *, object *)(queue, count, events, out);
    if (code == 0 && out && has_failed(count, events))
        fail(*out);
    return code;
}

static status wait_for(number count, const object *events)
{
    status code = NEXT(WAIT, number, const object *)(count, events);
    return code == 0 && has_failed(count, events) ? FAILED_IN_LIST : code;
}

static status event_info(object event, number name, size_t bytes, void *value, size_t *size)
{
    status code = NEXT(EVENT_INFO, object, number, size_t, void *, size_t *)(event, name, bytes, value, size);
    if (code == 0 && value && name == EXECUTION_STATUS && *(status *)value == 0 && has_failed(1, &event))
        *(status *)value = OUT_OF_RESOURCES;
    return code;
}

static void *extension(object platform, const char *name)
{
    void *found = ((void *(*)(object, const char *))next[EXTENSION])(platform, name);
    if (found && strcmp(name, "clEnqueueMemcpyINTEL") == 0) {
        *(void **)&next_copy = found;
        return copy;
    }
    if (found && strcmp(name, "clEnqueueMemFillINTEL") == 0) {
        *(void **)&next_fill = found;
        return fill;
    }
    return found;
}

void layer_fail(void)
{
    pthread_mutex_lock(&lock);
    armed = 1;
    pthread_mutex_unlock(&lock);
}

/* Fails the operations that are held. Returns their number. */
int layer_release(void)
{
    int count = 0;
    for (;; count++) {
        pthread_mutex_lock(&lock);
        object event = holds ? held[--holds] : NULL;
        pthread_mutex_unlock(&lock);
        if (!event)
            return count;
        NEXT(SET_USER_EVENT, object, status)(event, 0);
    }
}

status clGetLayerInfo(number name, size_t bytes, void *value, size_t *size)
{
    if (name != LAYER_API || (value && bytes < sizeof(number)))
        return INVALID_VALUE;
    if (value)
        *(number *)value = VERSION_100;
    if (size)
        *size = sizeof(number);
    return 0;
}

status clInitLayer(number count, void *const *target, number *out_count, void **out)
{
    if (count < KNOWN || count > ROOM)
        return INVALID_VALUE;
    memcpy(next, target, count * sizeof *next);
    memcpy(table, target, count * sizeof *table);
    table[WAIT] = wait_for;
    table[EVENT_INFO] = event_info;
    table[MARKER] = marker;
    table[BARRIER] = barrier;
    table[EXTENSION] = extension;
    *out_count = count;
    *out = table;
    return 0;
}

/* Newer loaders ask for these two. */
status clInitLayerWithProperties(number count, void *const *target, number *out_count, void **out, const void *properties)
{
    (void)properties;
    return clInitLayer(count, target, out_count, out);
}

status clDeinitLayer(void)
{
    return 0;
}
