/* The port for a computer (POSIX): trials, gateways, continuous integration. */
#ifndef SS_PORT_HOST_H
#define SS_PORT_HOST_H

#include "ss_sensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Fill in a port whose journal is kept in a folder, which is made where it is missing. Returns 0,
 * or the errno of what failed: EAGAIN, on some systems EACCES, where another process has the
 * folder. There is one port in a process: a second call gives up the folder of the first. After a
 * fork it fails in the child, which asks for one of its own when the parent has ended; sensors that
 * are open are closed there. Threads of a process take turns by themselves.
 *
 * Who deletes or restores the files of the folder gives back budget that was spent. On a computer
 * nothing can prevent that; on a device it takes someone who can write its flash.
 */
int ss_port_host(ss_port *port, const char *folder);

#ifdef __cplusplus
}
#endif

#endif
