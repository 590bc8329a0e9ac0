/* An application on Zephyr: goes through a life and its mishaps. Returns 0, or the number of what is not as it should be. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fake.h"
#include "ss_port_zephyr.h"

#define DAY 86400
#define NOW (20000LL * DAY)
#define EXPECT(number, what) do { if (!(what)) { printf("%d: %s\n", number, #what); return number; } } while (0)

static ss_sensor sensor;
static ss_port port;
static uint16_t x[SS_FEATURES];
static uint8_t packet[SS_PACKET_BYTES];

static ss_status reboot(void)
{
    memset(&sensor, 0, sizeof sensor);
    return (ss_port_zephyr(&port) == 0) ? ss_sensor_open(&sensor, &port) : SS_NOT_OPEN;
}

static ss_status release(void)
{
    return ss_sensor_release(&sensor, x, packet);
}

int main(void)
{
    struct nvs_fs mine = { .ready = true };
    uint32_t left;

    fake_erase();
    EXPECT(1, ss_port_zephyr(&port) == -EAGAIN); /* the time is not known */
    EXPECT(2, ss_port_zephyr_in(&port, &mine) == -EAGAIN);
    fake.uptime = 5000;
    ss_port_zephyr_set_time(NOW + 5);
    EXPECT(3, reboot() == SS_OK && ss_sensor_left(&sensor) == SS_BUDGET);
    EXPECT(4, port.epoch(port.board) == (uint32_t)(NOW / DAY / SS_BUDGET_DAYS));
    EXPECT(5, fake.writes == 2U);
    EXPECT(6, release() == SS_OK && ss_sensor_left(&sensor) == SS_BUDGET - 1U);
    EXPECT(7, fake.writes == 3U);

    left = ss_sensor_left(&sensor);
    EXPECT(8, reboot() == SS_OK && ss_sensor_left(&sensor) == left);
    while (release() == SS_OK) {
    }
    EXPECT(9, release() == SS_SPENT);
    EXPECT(10, reboot() == SS_OK && release() == SS_SPENT);

    for (int i = 0; i < 1000; i++) { /* a clock that jumps right after a reset brings nothing */
        ss_port_zephyr_set_time(NOW + i * (int64_t)DAY * SS_BUDGET_DAYS);
        EXPECT(29, release() == SS_SPENT);
    }
    ss_port_zephyr_set_time(NOW + 5);

    fake.uptime += 1000LL * DAY * SS_BUDGET_DAYS; /* the next period, by uptime */
    EXPECT(11, ss_sensor_left(&sensor) == SS_BUDGET && release() == SS_OK);

    left = ss_sensor_left(&sensor);
    fake.cut = true; /* NVS says that it wrote, and has not: the sensor reads back */
    EXPECT(12, release() == SS_NO_STORE);
    fake.cut = false;
    EXPECT(13, reboot() == SS_OK && ss_sensor_left(&sensor) == left && release() == SS_OK);
    fake.full = true;
    EXPECT(14, release() == SS_NO_STORE);
    fake.full = false;

    fake.no_entropy = true;
    EXPECT(15, reboot() == SS_NO_ENTROPY);
    fake.no_entropy = false;
    fake.stuck = true;
    EXPECT(16, reboot() == SS_NO_ENTROPY);
    fake.stuck = false;
    stub_zephyr_entropy.ready = false;
    EXPECT(17, reboot() == SS_NO_ENTROPY);
    stub_zephyr_entropy.ready = true;
    EXPECT(18, reboot() == SS_OK);

    ss_port_zephyr_set_time(NOW - DAY * SS_BUDGET_DAYS); /* set back */
    EXPECT(19, release() == SS_BAD_CLOCK && reboot() == SS_BAD_CLOCK);
    ss_port_zephyr_set_time(-1);
    EXPECT(20, port.epoch(port.board) == 0U && reboot() == SS_BAD_CLOCK);
    ss_port_zephyr_set_time(NOW + 10LL * DAY * SS_BUDGET_DAYS);
    EXPECT(21, reboot() == SS_OK && release() == SS_OK);

    fake.bad = true; /* a partition full of something else */
    EXPECT(22, ss_port_zephyr(&port) == -EDEADLK && reboot() == SS_NOT_OPEN && release() == SS_NOT_OPEN);
    fake.bad = false;
    stub_flash.ready = false;
    EXPECT(23, ss_port_zephyr(&port) == -ENODEV);
    stub_flash.ready = true;

    fake_erase(); /* an entry of another length is another's: no journal, and no blank memory either */
    fake_put(CONFIG_SS_NVS_FIRST_ID, packet, 3U);
    EXPECT(24, reboot() == SS_NO_STORE);
    fake_put(CONFIG_SS_NVS_FIRST_ID, (const uint8_t *)&sensor, SS_SLOT_BYTES + 1U);
    EXPECT(25, reboot() == SS_NO_STORE);
    EXPECT(26, port.load(port.board, 2U, packet, 1U) != 0 && port.store(port.board, 2U, packet, 1U) != 0);
    fake_erase(); /* NVS answers 0 to a write of what is there already: that is stored too */
    EXPECT(27, port.store(port.board, 0U, packet, 1U) == 0 && port.store(port.board, 0U, packet, 1U) == 0);
    fake_erase();
    mine.sector_size = 4096U;
    EXPECT(28, ss_port_zephyr_in(&port, &mine) == 0 && ss_sensor_open(&sensor, &port) == SS_OK && release() == SS_OK);
    return 0;
}
