/* How often each value stands in each row of the table: as certified. */
static bool counts(void)
{
@EXPECTED@    bool right = true;
    for (uint32_t row = 0U; row < @ROWS@U; row++) {
        for (uint32_t value = 0U; value < @VALUES@U; value++) {
            uint32_t count = 0U;
            for (uint32_t i = 0U; i < @ENTRIES@U; i++) {
                const int32_t entry = (int32_t)ss_noise_table[(row * @ENTRIES@U) + i];
                count += (entry == ((int32_t)value + (@LEAST@))) ? 1U : 0U;
            }
            right = right && (count == (uint32_t)expected[(row * @VALUES@U) + value]);
        }
    }
    return right;
}
