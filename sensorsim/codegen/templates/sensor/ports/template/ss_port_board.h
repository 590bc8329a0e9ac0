/* The port for your board: fill in the four functions of ss_port_board.c. */
#ifndef SS_PORT_BOARD_H
#define SS_PORT_BOARD_H

#include "ss_sensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fill in a port; it and what it points to must live as long as the sensor is open. */
void ss_port_board(ss_port *port);

#ifdef __cplusplus
}
#endif

#endif
