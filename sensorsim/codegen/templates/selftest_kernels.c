/*
 * The self-test: every vector in turn. Freestanding; needs no console, heap or libc.
 * {{ function }}() returns 0, or the number of the first vector that differs. It also sees when a
 * kernel writes past the end of an array.
 */
#include <stdbool.h>
{% for header in headers %}
#include "{{ header }}"
{% endfor %}

#define CANARY {{ canary }}
{% if pointers %}

{{ pointers | join("\n") }}
{% endif %}
{% for kind in filled %}

/* Whether the arrays are equal and the element behind the first is untouched. */
static bool same_{{ kind }}(const {{ c_types[kind] }} got[], const {{ c_types[kind] }} want[], uint32_t size)
{
    bool same = got[size] == ({{ c_types[kind] }})CANARY;
    for (uint32_t i = 0U; i < size; i++) {
        same = same && (got[i] == want[i]);
    }
    return same;
}
{% endfor %}
{% for kind in copied %}

/* Sets an array anew, so that the test can run again. */
static void copy_{{ kind }}({{ c_types[kind] }} to[], const {{ c_types[kind] }} from[], uint32_t size)
{
    for (uint32_t i = 0U; i < size; i++) {
        to[i] = from[i];
    }
}
{% endfor %}
{% for vector in vectors %}

{{ vector }}
{% endfor %}

uint32_t {{ function }}(void)
{
{% for _ in vectors %}
    if (!vector_{{ loop.index }}()) {
        return {{ loop.index }}U;
    }
{% endfor %}
    return 0U;
}
