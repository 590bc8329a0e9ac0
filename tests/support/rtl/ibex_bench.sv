// lowRISC Ibex between two memory ports without wait states. The configuration is chosen by macros of the build.

`ifndef MULTIPLIER
`define MULTIPLIER RV32MFast
`endif

module bench #(
    parameter bit BranchTargetALU = 1'b0,
    parameter bit WritebackStage  = 1'b0
) (
    input  logic        clk,
    input  logic        rst_n,
    output logic        instr_req,
    output logic [31:0] instr_addr,
    input  logic        instr_valid,
    input  logic [31:0] instr_data,
    output logic        data_req,
    output logic        data_write,
    output logic [ 3:0] data_bytes,
    output logic [31:0] data_addr,
    output logic [31:0] data_out,
    input  logic        data_valid,
    input  logic [31:0] data_in
);
    ibex_top #(
        .RV32M          (ibex_pkg::`MULTIPLIER),
        .BranchTargetALU(BranchTargetALU),
        .WritebackStage (WritebackStage)
    ) core (
        .clk_i(clk),
        .rst_ni(rst_n),
        .test_en_i(1'b0),
        .ram_cfg_i('0),
        .hart_id_i('0),
        .boot_addr_i(32'h8000),
        .instr_req_o(instr_req),
        .instr_gnt_i(instr_req),
        .instr_rvalid_i(instr_valid),
        .instr_addr_o(instr_addr),
        .instr_rdata_i(instr_data),
        .instr_rdata_intg_i('0),
        .instr_err_i(1'b0),
        .data_req_o(data_req),
        .data_gnt_i(data_req),
        .data_rvalid_i(data_valid),
        .data_we_o(data_write),
        .data_be_o(data_bytes),
        .data_addr_o(data_addr),
        .data_wdata_o(data_out),
        .data_wdata_intg_o(),
        .data_rdata_i(data_in),
        .data_rdata_intg_i('0),
        .data_err_i(1'b0),
        .irq_software_i(1'b0),
        .irq_timer_i(1'b0),
        .irq_external_i(1'b0),
        .irq_fast_i('0),
        .irq_nm_i(1'b0),
        .scramble_key_valid_i(1'b0),
        .scramble_key_i('0),
        .scramble_nonce_i('0),
        .scramble_req_o(),
        .debug_req_i(1'b0),
        .crash_dump_o(),
        .double_fault_seen_o(),
        .fetch_enable_i(ibex_pkg::IbexMuBiOn),
        .alert_minor_o(),
        .alert_major_internal_o(),
        .alert_major_bus_o(),
        .core_sleep_o(),
        .scan_rst_ni(rst_n)
    );
endmodule
