/* Runs the self-test where there is an operating system; firmware calls ss_selftest() itself. */
#include "ss_selftest.h"

int main(void)
{
    return (int)ss_selftest();
}
