static uint32_t table(void)
{
    uint32_t wrong = 0U;
    if (hash() != @HASH@U) {
        wrong = SS_SELFTEST_TABLE;
    }@MORE@
    return wrong;
}
