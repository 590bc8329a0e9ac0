#ifndef {{ function | upper }}_H
#define {{ function | upper }}_H

#include <stdint.h>

{% if private %}
#define SS_SELFTEST_VECTORS {{ vectors | length }}U /* the vectors are 1 to this */

{% endif %}
/*
 * 0 when every golden vector gives the expected bits, else the number of the first that does not.
 */
uint32_t {{ function }}(void);

#endif
