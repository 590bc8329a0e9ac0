// Stand-ins for the cells that a chip's maker provides and that lowRISC Ibex names: a buffer, a flip-flop, a clock gate.

module prim_buf #(
    parameter int Width = 1
) (
    input  logic [Width-1:0] in_i,
    output logic [Width-1:0] out_o
);
    assign out_o = in_i;
endmodule

module prim_flop #(
    parameter int Width = 1,
    parameter logic [Width-1:0] ResetValue = '0
) (
    input  logic             clk_i,
    input  logic             rst_ni,
    input  logic [Width-1:0] d_i,
    output logic [Width-1:0] q_o
);
    always_ff @(posedge clk_i or negedge rst_ni) begin
        if (!rst_ni) q_o <= ResetValue;
        else q_o <= d_i;
    end
endmodule

// The core never sleeps in these runs, so its clock is never stopped.
module prim_clock_gating (
    input  logic clk_i,
    input  logic en_i,
    input  logic test_en_i,
    output logic clk_o
);
    logic unused;
    assign unused = en_i | test_en_i;
    assign clk_o = clk_i;
endmodule
