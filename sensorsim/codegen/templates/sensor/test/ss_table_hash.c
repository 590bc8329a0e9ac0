/* CRC-32 of the table, its bytes in the order of little-endian memory, and of the constants that go with it. */
static uint32_t crc_of(uint32_t sum, uint32_t value, uint32_t bytes)
{
    for (uint32_t i = 0U; i < (8U * bytes); i++) {
        const uint32_t bit = (sum ^ (value >> i)) & 1U;
        sum = (sum >> 1) ^ ((bit != 0U) ? 0xEDB88320U : 0U);
    }
    return sum;
}

static uint32_t hash(void)
{
    uint32_t sum = 0xFFFFFFFFU;
@ENTRIES@@CONSTANTS@    return ~sum;
}
