/* Compilers generate calls of these. Volatile, so that none is generated inside of them. */
#include <stddef.h>

void *memcpy(void *to, const void *from, size_t count);
void *memmove(void *to, const void *from, size_t count);
void *memset(void *to, int value, size_t count);

void *memcpy(void *to, const void *from, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        ((volatile unsigned char *)to)[i] = ((const volatile unsigned char *)from)[i];
    }
    return to;
}

void *memmove(void *to, const void *from, size_t count)
{
    if ((const unsigned char *)to < (const unsigned char *)from) {
        return memcpy(to, from, count);
    }
    for (size_t i = count; i > 0; i--) {
        ((volatile unsigned char *)to)[i - 1] = ((const volatile unsigned char *)from)[i - 1];
    }
    return to;
}

void *memset(void *to, int value, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        ((volatile unsigned char *)to)[i] = (unsigned char)value;
    }
    return to;
}
