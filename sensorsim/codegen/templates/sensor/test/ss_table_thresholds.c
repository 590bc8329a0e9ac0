/* How often each symbol is drawn in each row, from the thresholds: as certified, and in no larger ratio. */
static bool counts(void)
{
@EXPECTED@    bool right = true;
    for (uint32_t symbol = 0U; symbol < @SYMBOLS@U; symbol++) {
        uint32_t least = 0xFFFFFFFFU;
        uint32_t most = 0U;
        for (uint32_t row = 0U; row < @ROWS@U; row++) {
            const uint32_t at = (row * @CUTS@U) + symbol;
            const uint32_t upper = (symbol < @CUTS@U) ? (uint32_t)ss_noise_table[at] : 0x10000U;
            const uint32_t lower = (symbol > 0U) ? (uint32_t)ss_noise_table[at - 1U] : 0U;
            const uint32_t count = upper - lower;
            right = right && (count == (uint32_t)expected[(row * @SYMBOLS@U) + symbol]);
            least = (count < least) ? count : least;
            most = (count > most) ? count : most;
        }
        right = right && (most <= 0xFFFFU) && (least <= 0xFFFFU) && ((most * @DENOMINATOR@U) <= (least * @NUMERATOR@U));
    }
    return right;
}
