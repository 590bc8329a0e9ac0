; What clang for MSP430 calls and does not bring along: products by the hardware multiplier MPY32 (at 0x4C0, as in the
; F5xx and FR5xx families), shifts by a variable count and quotients at 32 bit, one place in each round.

.macro negate low, high
    inv \low
    inv \high
    inc \low
    adc \high
.endm

.section .text.__mspabi_mpyi, "ax", @progbits
.global __mspabi_mpyi
.type __mspabi_mpyi, @function
__mspabi_mpyi:
    mov r12, &0x04C0
    mov r13, &0x04C8
    mov &0x04CA, r12
    ret
.size __mspabi_mpyi, . - __mspabi_mpyi

.section .text.__mspabi_mpyl, "ax", @progbits
.global __mspabi_mpyl
.type __mspabi_mpyl, @function
__mspabi_mpyl:
    mov r12, &0x04D0
    mov r13, &0x04D2
    mov r14, &0x04E0
    mov r15, &0x04E2
    mov &0x04E4, r12
    mov &0x04E6, r13
    ret
.size __mspabi_mpyl, . - __mspabi_mpyl

.section .text.__mspabi_slll, "ax", @progbits
.global __mspabi_slll
.type __mspabi_slll, @function
__mspabi_slll:
    tst r14
    jz 2f
1:  rla r12
    rlc r13
    dec r14
    jnz 1b
2:  ret
.size __mspabi_slll, . - __mspabi_slll

.section .text.__mspabi_srll, "ax", @progbits
.global __mspabi_srll
.type __mspabi_srll, @function
__mspabi_srll:
    tst r14
    jz 2f
1:  clrc
    rrc r13
    rrc r12
    dec r14
    jnz 1b
2:  ret
.size __mspabi_srll, . - __mspabi_srll

.section .text.__mspabi_sral, "ax", @progbits
.global __mspabi_sral
.type __mspabi_sral, @function
__mspabi_sral:
    tst r14
    jz 2f
1:  rra r13
    rrc r12
    dec r14
    jnz 1b
2:  ret
.size __mspabi_sral, . - __mspabi_sral

; r13:r12 = r13:r12 / r15:r14
.section .text.__mspabi_divul, "ax", @progbits
.global __mspabi_divul
.type __mspabi_divul, @function
__mspabi_divul:
    push r10
    push r9
    clr r10
    clr r11
    mov #32, r9
1:  rla r12
    rlc r13
    rlc r10
    rlc r11
    jc 2f
    cmp r15, r11
    jlo 3f
    jne 2f
    cmp r14, r10
    jlo 3f
2:  sub r14, r10
    subc r15, r11
    bis #1, r12
3:  dec r9
    jnz 1b
    pop r9
    pop r10
    ret
.size __mspabi_divul, . - __mspabi_divul

.section .text.__mspabi_divli, "ax", @progbits
.global __mspabi_divli
.type __mspabi_divli, @function
__mspabi_divli:
    mov r13, r11
    xor r15, r11
    push r11
    tst r13
    jge 1f
    negate r12, r13
1:  tst r15
    jge 2f
    negate r14, r15
2:  call #__mspabi_divul
    pop r11
    tst r11
    jge 3f
    negate r12, r13
3:  ret
.size __mspabi_divli, . - __mspabi_divli

; The same at 16 bit: r12 shifted by r13, r12 / r13.
.section .text.__mspabi_slli, "ax", @progbits
.global __mspabi_slli
.type __mspabi_slli, @function
__mspabi_slli:
    tst r13
    jz 2f
1:  rla r12
    dec r13
    jnz 1b
2:  ret
.size __mspabi_slli, . - __mspabi_slli

.section .text.__mspabi_srli, "ax", @progbits
.global __mspabi_srli
.type __mspabi_srli, @function
__mspabi_srli:
    tst r13
    jz 2f
1:  clrc
    rrc r12
    dec r13
    jnz 1b
2:  ret
.size __mspabi_srli, . - __mspabi_srli

.section .text.__mspabi_srai, "ax", @progbits
.global __mspabi_srai
.type __mspabi_srai, @function
__mspabi_srai:
    tst r13
    jz 2f
1:  rra r12
    dec r13
    jnz 1b
2:  ret
.size __mspabi_srai, . - __mspabi_srai

.section .text.__mspabi_divu, "ax", @progbits
.global __mspabi_divu
.type __mspabi_divu, @function
__mspabi_divu:
    clr r14
    mov #16, r15
1:  rla r12
    rlc r14
    jc 2f
    cmp r13, r14
    jlo 3f
2:  sub r13, r14
    bis #1, r12
3:  dec r15
    jnz 1b
    ret
.size __mspabi_divu, . - __mspabi_divu

.section .text.__mspabi_divi, "ax", @progbits
.global __mspabi_divi
.type __mspabi_divi, @function
__mspabi_divi:
    mov r12, r11
    xor r13, r11
    push r11
    tst r12
    jge 1f
    inv r12
    inc r12
1:  tst r13
    jge 2f
    inv r13
    inc r13
2:  call #__mspabi_divu
    pop r11
    tst r11
    jge 3f
    inv r12
    inc r12
3:  ret
.size __mspabi_divi, . - __mspabi_divi
