// A core with a memory that answers in the next cycle. Standard input: one `ADDRESS HEXBYTES` a line, what the memory
// holds at first; the core starts at 0x8080. A store to MARK starts the count of cycles, one to MARK + 4 ends the run
// and gives the result. Standard output: cycles and result, then every page that was stored to.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "Vbench.h"
#include "verilated.h"

static const uint32_t MARK = 0xF0000000, PAGE = 4096;
static const uint64_t LIMIT = 20000000;
static std::map<uint32_t, std::vector<uint8_t>> pages;
static std::set<uint32_t> stored;

static uint8_t *page_of(uint32_t address)
{
    auto &page = pages[address / PAGE];
    if (page.empty()) {
        page.assign(PAGE, 0);
    }
    return page.data();
}

static uint32_t load(uint32_t address)
{
    const uint8_t *at = page_of(address) + (address % PAGE & ~3U);
    return at[0] | at[1] << 8 | at[2] << 16 | static_cast<uint32_t>(at[3]) << 24;
}

static void store(uint32_t address, uint32_t word, unsigned bytes)
{
    uint8_t *at = page_of(address) + (address % PAGE & ~3U);
    for (unsigned k = 0; k < 4; k++) {
        if (bytes >> k & 1U) {
            at[k] = static_cast<uint8_t>(word >> 8 * k);
        }
    }
    stored.insert(address / PAGE);
}

static void read_memory()
{
    std::string start, text;
    while (std::cin >> start >> text) {
        uint32_t address = static_cast<uint32_t>(std::stoul(start, nullptr, 16));
        for (size_t k = 0; k + 1 < text.size(); k += 2, address++) {
            page_of(address)[address % PAGE] = static_cast<uint8_t>(std::stoul(text.substr(k, 2), nullptr, 16));
        }
    }
}

static void print(uint64_t cycles, uint32_t result)
{
    std::printf("%llu %x\n", static_cast<unsigned long long>(cycles), result);
    for (uint32_t number : stored) {
        std::printf("%x ", number * PAGE);
        for (uint8_t byte : pages[number]) {
            std::printf("%02x", byte);
        }
        std::printf("\n");
    }
}

int main(int argc, char **argv)
{
    Verilated::commandArgs(argc, argv);
    read_memory();
    Vbench core;
    uint64_t started = 0;
    for (uint64_t cycle = 0; cycle < LIMIT; cycle++) {
        core.rst_n = cycle >= 4;
        core.clk = 0;
        core.eval();
        const bool fetch = core.instr_req && core.rst_n, access = core.data_req && core.rst_n;
        const uint32_t fetched = fetch ? load(core.instr_addr) : 0, address = core.data_addr;
        uint32_t loaded = 0;
        if (access && core.data_write && address == MARK) {
            started = cycle;
        } else if (access && core.data_write && address == MARK + 4) {
            print(cycle - started, core.data_out);
            return 0;
        } else if (access && core.data_write) {
            store(address, core.data_out, core.data_bytes);
        } else if (access) {
            loaded = load(address);
        }
        core.clk = 1;
        core.eval();
        core.instr_valid = fetch;
        core.instr_data = fetched;
        core.data_valid = access;
        core.data_in = loaded;
    }
    std::fprintf(stderr, "the core did not end in %llu cycles\n", static_cast<unsigned long long>(LIMIT));
    return 1;
}
