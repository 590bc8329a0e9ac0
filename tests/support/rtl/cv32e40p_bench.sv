// OpenHW CV32E40P, no floating-point unit, no custom instructions, between two memory ports without wait states.

module bench (
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
    cv32e40p_core #(
        .COREV_PULP(0),
        .COREV_CLUSTER(0),
        .FPU(0),
        .FPU_ADDMUL_LAT(0),
        .FPU_OTHERS_LAT(0),
        .ZFINX(0),
        .NUM_MHPMCOUNTERS(1)
    ) core (
        .clk_i(clk),
        .rst_ni(rst_n),
        .pulp_clock_en_i(1'b1),
        .scan_cg_en_i(1'b0),
        .boot_addr_i(32'h8080),
        .mtvec_addr_i(32'h0),
        .dm_halt_addr_i(32'h0),
        .hart_id_i(32'h0),
        .dm_exception_addr_i(32'h0),
        .instr_req_o(instr_req),
        .instr_gnt_i(instr_req),
        .instr_rvalid_i(instr_valid),
        .instr_addr_o(instr_addr),
        .instr_rdata_i(instr_data),
        .data_req_o(data_req),
        .data_gnt_i(data_req),
        .data_rvalid_i(data_valid),
        .data_we_o(data_write),
        .data_be_o(data_bytes),
        .data_addr_o(data_addr),
        .data_wdata_o(data_out),
        .data_rdata_i(data_in),
        .apu_busy_o(),
        .apu_req_o(),
        .apu_gnt_i(1'b0),
        .apu_operands_o(),
        .apu_op_o(),
        .apu_flags_o(),
        .apu_rvalid_i(1'b0),
        .apu_result_i('0),
        .apu_flags_i('0),
        .irq_i('0),
        .irq_ack_o(),
        .irq_id_o(),
        .debug_req_i(1'b0),
        .debug_havereset_o(),
        .debug_running_o(),
        .debug_halted_o(),
        .fetch_enable_i(1'b1),
        .core_sleep_o()
    );
endmodule

// The core never sleeps in these runs, so its clock is never stopped.
module cv32e40p_clock_gate (
    input  logic clk_i,
    input  logic en_i,
    input  logic scan_cg_en_i,
    output logic clk_o
);
    logic unused;
    assign unused = en_i | scan_cg_en_i;
    assign clk_o = clk_i;
endmodule
